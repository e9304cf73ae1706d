// What the upstream server offers: every tool, resource and prompt that the server
// scenarios of the official conformance suite name, and a few for our own tests.
import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import {
    CLIENT_CAPABILITIES_META_KEY,
    acceptedContent,
    createRequestStateCodec,
    inputRequired,
    inputResponse
} from '@modelcontextprotocol/server';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC'; // 1x1, red
const WAV = wavOfSilence(8).toString('base64');
const pause = ms => new Promise(done => setTimeout(done, ms));
export const text = value => ({ content: [{ type: 'text', text: value }] });
export const object = (properties = {}, required = Object.keys(properties)) => ({ type: 'object', properties, required });

function wavOfSilence(samples) {
    const head = Buffer.alloc(44);
    head.write('RIFF', 0);
    head.writeUInt32LE(36 + samples, 4);
    head.write('WAVEfmt ', 8);
    head.writeUInt32LE(16, 16);
    head.writeUInt16LE(1, 20); // PCM
    head.writeUInt16LE(1, 22); // mono
    head.writeUInt32LE(8000, 24);
    head.writeUInt32LE(8000, 28);
    head.writeUInt16LE(1, 32);
    head.writeUInt16LE(8, 34);
    head.write('data', 36);
    head.writeUInt32LE(samples, 40);
    return Buffer.concat([head, Buffer.alloc(samples, 128)]);
}

// requestState leaves the process and comes back through the client: seal it.
export const sealed = createRequestStateCodec({ key: randomBytes(32), ttlSeconds: 300 });

// What changes at run time and is announced: one extra tool, one extra prompt, one resource.
export const world = { extraTool: false, extraPrompt: false, touches: 0 };
/** Says what changed: 'tools', 'prompts' or 'resource'. */
export const changes = new EventEmitter();
/** Says what ran here: for comparing what happens with what was asked. */
export const effects = new EventEmitter();
const announce = kind => changes.emit('change', kind);

const ask = {
    form: (message, requestedSchema) => inputRequired.elicit({ message, requestedSchema }),
    model: (words, maxTokens = 100) =>
        inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: words } }], maxTokens }),
    roots: () => inputRequired.listRoots()
};
const answered = (ctx, key) => {
    const seen = inputResponse(ctx.mcpReq.inputResponses, key);
    return seen.kind === 'missing' ? undefined : seen;
};
const spoken = seen => {
    const block = seen?.kind === 'sampling' ? [seen.result.content].flat()[0] : undefined;
    return block?.type === 'text' ? block.text : undefined;
};
const field = (ctx, key, name, type) => {
    const content = acceptedContent(ctx.mcpReq.inputResponses, key);
    return typeof content?.[name] === type ? content[name] : undefined;
};

/** One elicitation whose outcome is reported as text: the 2025 push scenarios and their 2026 form. */
const oneForm = (message, schema, label) => (args, ctx) => {
    const seen = answered(ctx, 'form');
    if (seen?.kind !== 'elicit') {
        return inputRequired({ inputRequests: { form: ask.form(args?.message ?? message, schema) } });
    }
    return text(`${label}: action=${seen.action}, content=${JSON.stringify(seen.content ?? {})}`);
};

const NAME = object({ name: { type: 'string' } });
const OK = object({ ok: { type: 'boolean' } });

export const TOOLS = [
    ['test_simple_text', 'Returns one text block', {}, () => text('This is a simple text response for testing.')],
    ['test_image_content', 'Returns one image block', {}, () => ({ content: [{ type: 'image', data: PNG, mimeType: 'image/png' }] })],
    ['test_audio_content', 'Returns one audio block', {}, () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] })],
    ['test_embedded_resource', 'Returns one embedded resource', {}, () => ({
        content: [{
            type: 'resource',
            resource: { uri: 'test://embedded-resource', mimeType: 'text/plain', text: 'This is an embedded resource content.' }
        }]
    })],
    ['test_multiple_content_types', 'Returns text, image and resource together', {}, () => ({
        content: [
            { type: 'text', text: 'Multiple content types test:' },
            { type: 'image', data: PNG, mimeType: 'image/png' },
            {
                type: 'resource',
                resource: { uri: 'test://mixed-content-resource', mimeType: 'application/json', text: JSON.stringify({ test: 'data', value: 123 }) }
            }
        ]
    })],
    ['test_error_handling', 'Always fails', {}, () => {
        throw new Error('This tool intentionally returns an error for testing');
    }],
    ['test_tool_with_logging', 'Logs three messages while running', {}, async (_args, ctx) => {
        await ctx.mcpReq.log('info', 'Tool execution started');
        await pause(50);
        await ctx.mcpReq.log('info', 'Tool processing data');
        await pause(50);
        await ctx.mcpReq.log('info', 'Tool execution completed');
        return text('logged three messages');
    }],
    ['test_logging_tool', 'Logs once, if the caller asked for logs', {}, async (_args, ctx) => {
        await ctx.mcpReq.log('info', 'one message');
        return text('done');
    }],
    ['test_tool_with_progress', 'Reports progress 0, 50, 100 of 100', {}, async (_args, ctx) => {
        const progressToken = ctx.mcpReq._meta?.progressToken;
        for (const progress of [0, 50, 100]) {
            if (progressToken !== undefined) {
                await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
            }
            if (progress < 100) await pause(50);
        }
        return text('progress reported');
    }],
    ['test_reconnection', 'Drops the response stream in mid-call; the result waits for the client to come back', {}, async (_args, ctx) => {
        ctx.http?.closeSSE?.();
        await pause(100);
        return text('result delivered after the stream was dropped');
    }],
    ['test_sampling', 'Asks the client for a completion', { prompt: { type: 'string' } }, (args, ctx) => {
        const reply = answered(ctx, 'completion');
        return reply ? text(`LLM response: ${spoken(reply)}`) : inputRequired({ inputRequests: { completion: ask.model(args.prompt) } });
    }],
    ['test_elicitation', 'Asks the user for two fields', { message: { type: 'string' } }, oneForm(
        'Please answer',
        object({ username: { type: 'string', description: "User's response" }, email: { type: 'string', description: "User's email address" } }),
        'User response'
    )],
    ['test_elicitation_sep1034_defaults', 'Elicits with a default in every primitive type', {}, oneForm(
        'Review the defaults',
        object({
            name: { type: 'string', default: 'John Doe' },
            age: { type: 'integer', default: 30 },
            score: { type: 'number', default: 95.5 },
            status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
            verified: { type: 'boolean', default: true }
        }, []),
        'Elicitation completed'
    )],
    ['test_elicitation_sep1330_enums', 'Elicits with all five enum forms', {}, oneForm(
        'Choose',
        object({
            untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
            titledSingle: { type: 'string', oneOf: ['First', 'Second', 'Third'].map((n, i) => ({ const: `value${i + 1}`, title: `${n} Option` })) },
            legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
            untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
            titledMulti: { type: 'array', items: { anyOf: ['First', 'Second', 'Third'].map((n, i) => ({ const: `value${i + 1}`, title: `${n} Choice` })) } }
        }, []),
        'Elicitation completed'
    )],

    // 2026-07-28: input_required results
    ['test_input_required_result_elicitation', 'Asks for a name, then greets', {}, (_args, ctx) => {
        const name = field(ctx, 'user_name', 'name', 'string');
        return name === undefined ? inputRequired({ inputRequests: { user_name: ask.form('What is your name?', NAME) } }) : text(`Hello, ${name}!`);
    }],
    ['test_input_required_result_sampling', 'Asks the model one question', {}, (_args, ctx) => {
        const reply = answered(ctx, 'capital_question');
        return reply ? text(`Model said: ${spoken(reply)}`) : inputRequired({ inputRequests: { capital_question: ask.model('What is the capital of France?') } });
    }],
    ['test_input_required_result_list_roots', 'Asks for the roots', {}, (_args, ctx) => {
        const seen = answered(ctx, 'client_roots');
        return seen?.kind === 'roots'
            ? text(`Roots: ${seen.roots.map(root => root.uri).join(', ')}`)
            : inputRequired({ inputRequests: { client_roots: ask.roots() } });
    }],
    ['test_input_required_result_request_state', 'Asks to confirm, carrying state', {}, async (_args, ctx) => {
        const state = ctx.mcpReq.requestState();
        if (state?.step === 'confirm' && field(ctx, 'confirm', 'ok', 'boolean') !== undefined) return text('state-ok');
        return inputRequired({
            inputRequests: { confirm: ask.form('Please confirm', OK) },
            requestState: await sealed.mint({ step: 'confirm' })
        });
    }],
    ['test_input_required_result_tampered_state', 'As the former; exists to have its state tampered with', {}, async (_args, ctx) => {
        if (ctx.mcpReq.requestState()?.step === 'guarded' && answered(ctx, 'confirm')) return text('state intact');
        return inputRequired({
            inputRequests: { confirm: ask.form('Please confirm', OK) },
            requestState: await sealed.mint({ step: 'guarded' })
        });
    }],
    ['test_input_required_result_multiple_inputs', 'Asks three things at once', {}, async (_args, ctx) => {
        const [name, greeting, roots] = ['user_name', 'greeting', 'client_roots'].map(key => answered(ctx, key));
        if (name && greeting && roots && ctx.mcpReq.requestState()?.step === 'three') {
            return text(`${spoken(greeting)} ${name.content?.name}; ${roots.roots.length} root(s)`);
        }
        return inputRequired({
            inputRequests: {
                user_name: ask.form('What is your name?', NAME),
                greeting: ask.model('Generate a greeting', 50),
                client_roots: ask.roots()
            },
            requestState: await sealed.mint({ step: 'three' })
        });
    }],
    ['test_input_required_result_multi_round', 'Asks twice, in sequence', {}, async (_args, ctx) => {
        const state = ctx.mcpReq.requestState();
        if (state?.step === 'color') {
            const color = field(ctx, 'step2', 'color', 'string');
            if (color !== undefined) return text(`${state.name} likes ${color}`);
        }
        const name = state?.step === 'color' ? state.name : field(ctx, 'step1', 'name', 'string');
        if (state && name !== undefined) {
            return inputRequired({
                inputRequests: { step2: ask.form('Step 2: What is your favorite color?', object({ color: { type: 'string' } })) },
                requestState: await sealed.mint({ step: 'color', name })
            });
        }
        return inputRequired({
            inputRequests: { step1: ask.form('Step 1: What is your name?', NAME) },
            requestState: await sealed.mint({ step: 'name' })
        });
    }],
    ['test_input_required_result_capabilities', 'Asks only what the client declared it can answer', {}, (_args, ctx, server) => {
        const can = ctx.mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? server.server.getClientCapabilities() ?? {};
        if (Object.keys(ctx.mcpReq.inputResponses ?? {}).length > 0) return text('answered');
        const inputRequests = {
            ...(can.sampling && { thought: ask.model('Say one word') }),
            ...(can.elicitation && { user_name: ask.form('What is your name?', NAME) }),
            ...(can.roots && { client_roots: ask.roots() })
        };
        return Object.keys(inputRequests).length > 0 ? inputRequired({ inputRequests }) : text('the client can answer nothing');
    }],
    ['test_missing_capability', 'Cannot work without sampling', {}, (_args, ctx) => {
        const reply = answered(ctx, 'needed');
        return reply ? text(`got: ${spoken(reply)}`) : inputRequired({ inputRequests: { needed: ask.model('Say pong', 16) } });
    }],
    ['test_streaming_elicitation', 'Reports progress if asked, and ends; never sends a request of its own', {}, async (_args, ctx) => {
        const progressToken = ctx.mcpReq._meta?.progressToken;
        if (progressToken !== undefined) {
            await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: 1, total: 1 } });
        }
        return text('nothing asked');
    }],

    // changes to announce
    ['test_trigger_tool_change', 'Adds or removes a tool', {}, () => {
        world.extraTool = !world.extraTool;
        announce('tools');
        return text(`extra tool ${world.extraTool ? 'on' : 'off'}`);
    }],
    ['test_trigger_prompt_change', 'Adds or removes a prompt', {}, () => {
        world.extraPrompt = !world.extraPrompt;
        announce('prompts');
        return text(`extra prompt ${world.extraPrompt ? 'on' : 'off'}`);
    }],
    ['test_touch_watched_resource', 'Changes test://watched-resource (not in the suite; for our own tests)', {}, () => {
        world.touches += 1;
        announce('resource');
        return text(`touched ${world.touches} times`);
    }],

    // not in the suite; for our own tests of a gateway
    ['test_echo', 'Returns its argument, structured as well', { message: { type: 'string' } }, args => ({
        ...text(args.message), structuredContent: { message: args.message }
    }), { outputSchema: object({ message: { type: 'string' } }) }],
    ['test_sleep', 'Sleeps; says on stderr when it was cancelled', { ms: { type: 'integer', minimum: 0, maximum: 60000 } }, async (args, ctx) => {
        const end = Date.now() + args.ms;
        while (Date.now() < end && !ctx.mcpReq.signal.aborted) await pause(Math.min(20, Math.max(1, end - Date.now())));
        if (ctx.mcpReq.signal.aborted) {
            console.error('test_sleep: cancelled');
            effects.emit('effect', { cancelled: 'test_sleep' });
        }
        return text(ctx.mcpReq.signal.aborted ? 'cancelled' : 'slept');
    }],
    ['test_big', 'Returns a text of n bytes', { n: { type: 'integer', minimum: 0, maximum: 67108864 } }, args => text('x'.repeat(args.n))]
];

// Tools whose schema is the point.
const SCHEMA_2020_12 = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: {
        address: { $anchor: 'address', type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } }
    },
    properties: {
        name: { type: 'string' },
        address: { $ref: '#/$defs/address' },
        by: { enum: ['phone', 'email'] },
        phone: { type: 'string' },
        email: { type: 'string' }
    },
    allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
    if: { required: ['by'], properties: { by: { const: 'phone' } } },
    then: { required: ['phone'] },
    else: { required: ['email'] },
    additionalProperties: false
};
TOOLS.push(
    ['json_schema_2020_12_tool', 'Its input schema uses the wider JSON Schema 2020-12 vocabulary', SCHEMA_2020_12, args => text(JSON.stringify(args)), { raw: true }],
    ['test_x_mcp_header', 'One argument is mirrored into a header', {
        type: 'object',
        properties: {
            region: { type: 'string', 'x-mcp-header': 'Region' },
            level: { type: 'integer' }
        }
    }, args => text(`region ${args.region ?? 'unset'}`), { raw: true }]
);

export const RESOURCES = [
    ['static-text', 'test://static-text', 'A fixed text', 'text/plain', () => ({ text: 'This is the content of the static text resource.' })],
    ['static-binary', 'test://static-binary', 'A fixed image', 'image/png', () => ({ blob: PNG })],
    ['watched-resource', 'test://watched-resource', 'A text that can change', 'text/plain', () => ({ text: `touched ${world.touches} times` })]
];

const says = (role, content) => ({ role, content });
export const user = words => says('user', { type: 'text', text: words });
export const PROMPTS = [
    ['test_simple_prompt', 'A prompt without arguments', undefined, () => ({ messages: [user('This is a simple prompt for testing.')] })],
    ['test_prompt_with_arguments', 'A prompt with two arguments', object({
        arg1: { type: 'string', description: 'First test argument' },
        arg2: { type: 'string', description: 'Second test argument' }
    }), ({ arg1, arg2 }) => ({ messages: [user(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)] })],
    ['test_prompt_with_embedded_resource', 'A prompt embedding a resource', object({ resourceUri: { type: 'string', description: 'What to embed' } }),
        ({ resourceUri }) => ({
            messages: [
                says('user', { type: 'resource', resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' } }),
                user('Please process the embedded resource above.')
            ]
        })],
    ['test_prompt_with_image', 'A prompt with an image', undefined, () => ({
        messages: [says('user', { type: 'image', data: PNG, mimeType: 'image/png' }), user('Please analyze the image above.')]
    })],
    ['test_input_required_result_prompt', 'A prompt that asks first', undefined, (_args, ctx) => {
        const context = field(ctx, 'user_context', 'context', 'string');
        return context === undefined
            ? inputRequired({ inputRequests: { user_context: ask.form('What context should the prompt use?', object({ context: { type: 'string' } })) } })
            : { messages: [user(`Context: ${context}`)] };
    }]
];
