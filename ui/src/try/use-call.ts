import { useCallback, useEffect, useRef, useState } from 'react';
import { isAbort, messageOf } from '../api/http';
import { callTool, RpcFailure, type CallResult, type InputRequest, type InputResponse, type Progress } from '../api/mcp';
import type { Tool } from '../api/types';
import type { Values } from './values';

export type CallState =
  | { kind: 'idle' }
  | { kind: 'running'; progress?: Progress | undefined; began: number }
  | { kind: 'asking'; requests: Record<string, InputRequest>; state: string | undefined; began: number }
  | { kind: 'done'; result: CallResult; took: number }
  | { kind: 'failed'; message: string; data: unknown; took: number }
  | { kind: 'cancelled' }
  | { kind: 'exhausted' };

/** As the official clients: a server that asks more often is given up. */
const MOST_ROUNDS = 10;
const PACE = 250;

export interface ToolCall {
  state: CallState;
  logs: string[];
  run: (values: Values) => void;
  answer: (answers: Record<string, InputResponse>) => void;
  cancel: () => void;
}

type Send = (answers?: Record<string, InputResponse>, requestState?: string) => Promise<void>;

export function useCall(server: string, tool: Tool): ToolCall {
  const [state, setState] = useState<CallState>({ kind: 'idle' });
  const [logs, setLogs] = useState<string[]>([]);
  const going = useRef<AbortController>(undefined);
  const sent = useRef<{ values: Values; rounds: number; began: number }>({ values: {}, rounds: 0, began: 0 });

  const again = useRef<Send>(() => Promise.resolve());

  useEffect(() => () => going.current?.abort(), []);

  const send = useCallback<Send>(async (answers, requestState) => {
    going.current?.abort();
    const stop = new AbortController();
    going.current = stop;
    const { values, began } = sent.current;
    setState({ kind: 'running', began });
    try {
      const result = await callTool({
        server, tool: tool.name, schema: tool.inputSchema, arguments: values, answers, requestState,
        signal: stop.signal,
        onProgress: (progress) => setState({ kind: 'running', progress, began }),
        onLog: (line) => setLogs((before) => [...before, line].slice(-200)),
      });
      if (result.resultType !== 'input_required') {
        setState({ kind: 'done', result, took: performance.now() - began });
        return;
      }
      sent.current.rounds += 1;
      if (sent.current.rounds > MOST_ROUNDS) {
        setState({ kind: 'exhausted' });
      } else if (Object.keys(result.inputRequests ?? {}).length === 0) {
        // It asks nothing but to be asked again.
        await new Promise((resolve) => window.setTimeout(resolve, PACE));
        await again.current(undefined, result.requestState);
      } else {
        setState({ kind: 'asking', requests: result.inputRequests ?? {}, state: result.requestState, began });
      }
    } catch (error) {
      if (going.current !== stop) {
        return;
      }
      if (isAbort(error) || stop.signal.aborted) {
        setState({ kind: 'cancelled' });
        return;
      }
      const data = error instanceof RpcFailure ? error.data : undefined;
      setState({ kind: 'failed', message: messageOf(error), data, took: performance.now() - began });
    }
  }, [server, tool]);
  useEffect(() => {
    again.current = send;
  }, [send]);

  const run = useCallback((values: Values) => {
    sent.current = { values, rounds: 0, began: performance.now() };
    setLogs([]);
    void send();
  }, [send]);

  const answer = useCallback((answers: Record<string, InputResponse>) => {
    if (state.kind === 'asking') {
      void send(answers, state.state);
    }
  }, [send, state]);

  const cancel = useCallback(() => {
    going.current?.abort();
    setState({ kind: 'cancelled' });
  }, []);

  return { state, logs, run, answer, cancel };
}
