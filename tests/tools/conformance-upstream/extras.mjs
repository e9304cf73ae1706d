// Fixtures for comparing a gateway with the server itself (`--extra`): what the suite does
// not look at, but a gateway could spoil.
import { inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { object, text } from './fixtures.mjs';

const ICON = { src: 'data:image/svg+xml;base64,PHN2Zy8+', mimeType: 'image/svg+xml', sizes: ['any'] };
const mine = ([key]) => key.startsWith('example.org/');

/** As TOOLS: name, description, properties, handler, more. */
export const EXTRA_TOOLS = [
    ['extra_annotated', 'Has every ornament a tool can have', { count: { type: 'integer', default: 3 } }, args => text(`count ${args.count}`), {
        title: 'An annotated tool',
        annotations: { title: 'Annotated', readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
        icons: [ICON],
        _meta: { 'example.org/definition': { deep: [1, 2.5, null, 'ü'] } }
    }],
    ['extra_meta', 'Returns the vendor _meta it was called with', {}, (_args, ctx) => ({
        ...text('see _meta'),
        structuredContent: { got: Object.fromEntries(Object.entries(ctx.mcpReq._meta ?? {}).filter(mine)) },
        _meta: { 'example.org/answer': { n: 12345678901, f: 1.5, s: 'ü', none: null } }
    })],
    ['extra_links', 'Returns links and annotated content', {}, () => ({
        content: [
            { type: 'resource_link', uri: 'test://static-text', name: 'static-text', mimeType: 'text/plain', description: 'A link' },
            { type: 'text', text: 'annotated', annotations: { audience: ['user'], priority: 0.5 }, _meta: { 'example.org/block': 1 } }
        ]
    })],
    ['extra_list', 'Structured content that is no object', {}, () => ({
        ...text('[1,"two",null]'), structuredContent: [1, 'two', null]
    }), { outputSchema: { type: 'array', items: {} } }],
    ['extra_progress', 'Reports progress with messages, as often as told', { steps: { type: 'integer' } }, async ({ steps }, ctx) => {
        const progressToken = ctx.mcpReq._meta?.progressToken;
        for (let step = 1; step <= steps && progressToken !== undefined; step++) {
            await ctx.mcpReq.notify({
                method: 'notifications/progress',
                params: { progressToken, progress: step + 0.5, ...(step % 2 && { total: steps + 1 }), message: `step ${step}` }
            });
        }
        return text(`${steps} steps`);
    }],
    ['extra_log', 'Logs once per level', {}, async (_args, ctx) => {
        for (const level of ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']) {
            await ctx.mcpReq.log(level, { said: level, list: [1, 'ü'] }, 'extra');
        }
        return text('logged');
    }],
    ['extra_elicit_url', 'Asks the user to open a page', {}, (_args, ctx) => {
        const seen = inputResponse(ctx.mcpReq.inputResponses, 'page');
        return seen.kind === 'elicit'
            ? text(`page: ${seen.action}`)
            : inputRequired({ inputRequests: { page: inputRequired.elicitUrl({ message: 'Open it', url: 'https://example.org/page?a=b' }) } });
    }],
    ['extra_whoami', 'Asks for a name and tells it, slowly', { as: { type: 'string' } }, (args, ctx) => {
        const seen = inputResponse(ctx.mcpReq.inputResponses, 'name');
        return seen.kind === 'elicit'
            ? text(`${args.as} is ${seen.content?.name}`)
            : inputRequired({ inputRequests: { name: inputRequired.elicit({ message: `Who is ${args.as}?`, requestedSchema: object({ name: { type: 'string' } }) }) } });
    }]
];

/** Splits every list into pages of `size`; the cursor is the place to go on at. */
export function paged(server, size, refuse) {
    const lists = { 'tools/list': 'tools', 'resources/list': 'resources', 'resources/templates/list': 'resourceTemplates', 'prompts/list': 'prompts' };
    for (const [method, field] of Object.entries(lists)) {
        // The SDK has no pages; its own handler is behind a protected accessor.
        const whole = server._getRequestHandler(method);
        server._requestHandlers.set(method, async (request, ctx) => {
            const { cursor, ...params } = request.params ?? {};
            const start = cursor === undefined ? 0 : Number(cursor.match(/^at-(\d+)$/)?.[1] ?? NaN);
            const result = await whole({ ...request, params }, ctx);
            if (!(start <= result[field].length)) throw refuse(`no such cursor: ${cursor}`);
            const rest = result[field].slice(start);
            return { ...result, [field]: rest.slice(0, size), ...(rest.length > size && { nextCursor: `at-${start + size}` }) };
        });
    }
}
