// Questions that the server answers with questions of its own.

/** Lets a client give other answers than its own while `use` runs. */
async function answering(one, answers, use) {
    one.asked.length = 0;
    const before = one.answers;
    one.answers = { ...before, ...answers };
    try {
        return await use();
    } finally {
        one.answers = before;
    }
}

/** A call, with what was asked meanwhile. */
const asked = (peer, name, args = {}, answers = {}, one = peer.one) =>
    answering(one, answers, async () => ({ result: await peer.call(name, args, {}, one), asked: [...one.asked] }));

const ask = (name, args) => [name, peer => asked(peer, name, args)];
const elicit = content => ({ elicit: () => ({ action: 'accept', content }) });
const any = list => [...list].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));

export const ASKING = [
    ask('test_elicitation', { message: 'Who are you?' }),
    ['a form declined', peer => asked(peer, 'test_elicitation', { message: 'Who?' }, { elicit: () => ({ action: 'decline' }) })],
    ['a form cancelled', peer => asked(peer, 'test_elicitation', { message: 'Who?' }, { elicit: () => ({ action: 'cancel' }) })],
    ['a form with odd content', peer => asked(peer, 'test_elicitation', { message: 'Who?' }, elicit({ username: 'ü"\\\n世', email: '' }))],
    ['a form with defaults', peer => asked(peer, 'test_elicitation_sep1034_defaults', {}, elicit({ name: 'x', age: 31, score: 0.5, verified: false }))],
    ['a form with enums', peer => asked(peer, 'test_elicitation_sep1330_enums', {}, elicit({ untitledSingle: 'option2', titledMulti: ['value1', 'value3'] }))],
    ['a form filled in twice', async peer => [await asked(peer, 'test_elicitation', { message: 'One' }), await asked(peer, 'test_elicitation', { message: 'Two' })]],
    ['a page to open', peer => asked(peer, 'extra_elicit_url')],
    ['a page not opened', peer => asked(peer, 'extra_elicit_url', {}, { elicit: () => ({ action: 'decline' }) })],
    ask('test_sampling', { prompt: 'Say ü' }),
    ['sampling refused', peer => asked(peer, 'test_sampling', { prompt: 'x' }, {
        sample: () => {
            throw Object.assign(new Error('the user said no'), { code: -1 });
        }
    }), { unless: ({ client, upstream }) => (client === 'modern' || upstream === '2026') && 'a modern round has no form for a refusal' }],
    ask('test_input_required_result_elicitation'),
    ask('test_input_required_result_sampling'),
    ask('test_input_required_result_list_roots'),
    ask('test_input_required_result_request_state'),
    ask('test_input_required_result_multi_round'),
    ['three things at once', async peer => {
        const { asked: questions, result } = await asked(peer, 'test_input_required_result_multiple_inputs');
        return { asked: any(questions), result };
    }],
    ['a prompt that asks', async peer => {
        const { one } = peer;
        return answering(one, elicit({ context: 'rainy' }), async () => ({ result: await peer.prompt('test_input_required_result_prompt'), asked: [...one.asked] }));
    }],
    ['only what it can be asked', peer => peer.with({ sampling: {} }, one => asked(peer, 'test_input_required_result_capabilities', {}, {}, one))],
    ['nothing it can be asked', peer => peer.with({}, one => asked(peer, 'test_input_required_result_capabilities', {}, {}, one))],
    // A legacy client is told in the tool's result, whose words are each hop's own.
    ['a question it cannot be asked', peer => peer.with({ roots: {} }, async one => {
        const { result, asked: questions } = await asked(peer, 'test_missing_capability', {}, {}, one);
        return { isError: result.isError, questions };
    }), {
        codeOnly: true,
        unless: ({ client, upstream }) => client === 'modern' && upstream === '2025'
            && 'a 2025 server that is told of no sampling refuses in its result, and only it knows why'
    }],
    ['two clients asked at once', async peer => {
        const as = name => peer.with({ elicitation: { form: {} } }, async one => {
            one.answers.elicit = async ({ message }) => {
                await new Promise(done => setTimeout(done, 100));
                return { action: 'accept', content: { name: `${name}, asked ${message}` } };
            };
            return (await peer.call('extra_whoami', { as: name }, {}, one)).content[0].text;
        });
        return Promise.all(['Ada', 'Bea', 'Cy'].map(as));
    }, { unordered: true }],
    ['a call beside a question', async peer => peer.with({ elicitation: { form: {} } }, async one => {
        let release;
        const asking = new Promise(begun => {
            one.answers.elicit = () => new Promise(done => {
                release = () => done({ action: 'accept', content: { name: 'late' } });
                begun();
            });
        });
        const waiting = peer.call('extra_whoami', { as: 'Eve' }, {}, one);
        await asking;
        const beside = await peer.read('test://static-text', one);
        release();
        return { beside, result: await waiting };
    })]
];
