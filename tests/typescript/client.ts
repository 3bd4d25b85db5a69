import createClient from "openapi-fetch";
import type { paths } from "./germane.js";

const [baseUrl, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

const made = await client.POST("/v1/memories", {
  body: { content: "We chose PostgreSQL for billing.", kind: "decision" },
});
if (made.error) throw new Error(made.error.detail);
const context = await client.POST("/v1/assemble", { body: { query: "Which database?", budget: 300 } });
if (context.error) throw new Error(context.error.detail);
const missing = await client.GET("/v1/memories/{memory_id}", { params: { path: { memory_id: "unknown" } } });
const order = await client.GET("/v1/memories", { params: { query: { order: "newest", limit: 10 } } });
// @ts-expect-error There is no such order, so the types have to refuse it.
await client.GET("/v1/memories", { params: { query: { order: "nothing" } } });

console.log(
  JSON.stringify({
    id: made.data.memory.id,
    text: context.data.text,
    tokens: context.data.tokens,
    status: missing.response.status,
    type: missing.error?.type,
    total: order.data?.total,
  }),
);
