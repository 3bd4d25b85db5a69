// The same calls by the AI SDK; prints what came back as JSON.
import { createMCPClient } from "@ai-sdk/mcp";

const client = await createMCPClient({ transport: { type: "http", url: process.argv[2] } });
const tools = await client.tools();
const options = { toolCallId: "1", messages: [] };
const call = async (name, given) => (await tools[name].execute(given, options)).content[0].text;
const recalled = await call("recall", { query: "refunds", kinds: ["fact"] });
const context = await call("context", { question: "How long do refunds take?", budget: 300 });
const stored = await call("remember", { content: "Written by the AI SDK.", tags: ["node"] });
console.log(JSON.stringify({ tools: Object.keys(tools), recalled, context, stored }));
await client.close();
