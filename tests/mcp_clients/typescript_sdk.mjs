// The same calls by the TypeScript SDK; prints what came back as JSON.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "test", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
const call = async (name, given) => (await client.callTool({ name, arguments: given })).content[0].text;
const tools = (await client.listTools()).tools.map((each) => each.name);
const recalled = await call("recall", { query: "refunds", kinds: "fact" });
const context = await call("context", { question: "How long do refunds take?", budget: 300 });
const stored = await call("remember", { content: "Written in TypeScript.", tags: ["node"] });
const resource = (await client.readResource({ uri: `germane://memory/${recalled.slice(1, 9)}` })).contents[0].text;
const prompt = (await client.getPrompt({ name: "brief", arguments: { topic: "refunds" } })).messages[0].content.text;
console.log(JSON.stringify({ tools, recalled, context, stored, resource, prompt }));
await client.close();
