import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'
import {
  WaitTimeoutError,
  type Inbox,
  type Message,
  type WaitOptions,
} from '#clients/typescript/src/mayfly.js'
import { cursor, filters, inboxIdOrAddress, password, text } from './arguments.js'
import { FullMessage, fullMessage, messageText, NOTICE, oneLine, untrusted } from './mail-content.js'
import { inboxBy, READS_MAIL, result, runTool, type Connection, type ToolCall } from './tool-call.js'

const waitInput = {
  inbox_id: inboxIdOrAddress,
  password,
  ...filters,
  cursor,
  timeout_seconds: z
    .number()
    .int()
    .min(0)
    .max(55)
    .default(25)
    .describe('How long to wait, at most 55 seconds.'),
}

const waitOutput = {
  notice: z.string(),
  status: z.enum(['received', 'timeout']),
  cursor: z
    .string()
    .describe('The position after the message; after a timeout, after all messages that were examined.'),
  arrived: z
    .array(
      z.object({
        message_id: z.string(),
        received_at: z.string(),
        mismatches: z.array(z.string()),
        untrusted_content: z.object({ subject: z.string().nullable() }),
      }),
    )
    .optional()
    .describe('After a timeout: the messages that came nearest to a match, and why they did not match.'),
}

/** The properties of the result of a wait for a part of a message. */
const found = { message_id: z.string().optional(), received_at: z.string().optional() }

type WaitInput = z.infer<z.ZodObject<typeof waitInput>>

const WAIT_FOR_MESSAGE = {
  title: 'Wait for a message',
  description:
    'Waits for a message that matches all filters: the oldest one that has already arrived, or the next one to arrive. An ' +
    'address may have no inbox yet, if mail to it makes one.',
  inputSchema: z.strictObject(waitInput),
  outputSchema: z.object({ ...waitOutput, message: FullMessage.optional() }),
  annotations: READS_MAIL,
}

const WAIT_FOR_CODE = {
  title: 'Wait for a one-time code',
  description:
    'Waits for a message with a one-time code, such as 493201, and returns the code: of the oldest message that matches, ' +
    'or of the next one to arrive.',
  inputSchema: z.strictObject(waitInput),
  outputSchema: z.object({
    ...{ ...waitOutput, ...found },
    untrusted_content: z
      .object({ code: z.string(), subject: z.string().nullable(), sender: z.string() })
      .optional(),
  }),
  annotations: READS_MAIL,
}

const WAIT_FOR_LINK = {
  title: 'Wait for a link',
  description:
    'Waits for a message with a link, such as one that confirms an address, and returns the link. It is not opened.',
  inputSchema: z.strictObject({
    ...waitInput,
    contains: text.describe('The address or the text of the link contains this text.'),
  }),
  outputSchema: z.object({
    ...{ ...waitOutput, ...found },
    untrusted_content: z
      .object({ link: z.string(), subject: z.string().nullable(), sender: z.string() })
      .optional(),
  }),
  annotations: READS_MAIL,
}

/** wait_for_message, wait_for_code and wait_for_link. */
export function addWaitTools(server: McpServer, connection: Connection): void {
  server.registerTool('wait_for_message', WAIT_FOR_MESSAGE, (input, { signal }) =>
    runTool(connection, signal, (call) =>
      waitResult(call, input, async (inbox, options) => {
        const received = await inbox.waitForMessage(options)
        const message = fullMessage(received)
        return { cursor: received.cursor, found: { message }, text: messageText(message) }
      }),
    ),
  )

  server.registerTool('wait_for_code', WAIT_FOR_CODE, (input, { signal }) =>
    runTool(connection, signal, (call) =>
      waitResult(call, input, (inbox, options) =>
        partOf((match) => inbox.waitForCode({ ...options, match }), 'code'),
      ),
    ),
  )

  server.registerTool('wait_for_link', WAIT_FOR_LINK, ({ contains, ...input }, { signal }) =>
    runTool(connection, signal, (call) =>
      waitResult(call, input, (inbox, options) =>
        partOf((match) => inbox.waitForLink(contains, { ...options, match }), 'link'),
      ),
    ),
  )
}

/** What a wait has found: properties of its result, and a text. */
interface Found {
  cursor: string | null
  found: Record<string, unknown>
  text: string
}

/** Waits, and makes the result of the tool, also if nothing matched in time. */
async function waitResult(
  call: ToolCall,
  { inbox_id: id, password, cursor: since, timeout_seconds: seconds, ...texts }: WaitInput,
  wait: (inbox: Inbox, options: WaitOptions) => Promise<Found>,
): Promise<CallToolResult> {
  const deadline = performance.now() + seconds * 1_000
  const inbox = await inboxBy(call, id, { password, deadline })
  try {
    const timeoutMs = Math.max(deadline - performance.now(), 0)
    const options = { ...texts, since, signal: call.signal, timeoutMs }
    const { cursor, found, text } = await wait(inbox, options)
    return result({ notice: NOTICE, status: 'received', cursor, ...found }, `cursor: ${cursor}`, text)
  } catch (error) {
    if (!(error instanceof WaitTimeoutError)) throw error
    const { cursor } = error
    const arrived = error.arrived.map(({ id, received_at, mismatches, subject }) => ({
      message_id: id,
      ...{ received_at, mismatches },
      untrusted_content: { subject: subject === null ? null : oneLine(subject) },
    }))
    const lines = arrived.map(({ message_id: id, mismatches, untrusted_content: { subject } }) => {
      return `${id}: ${mismatches.join('; ')} Subject: ${subject ?? '(none)'}`
    })
    return result(
      { notice: NOTICE, status: 'timeout', cursor, arrived },
      `No message matched within ${seconds} s. To go on waiting, call this tool again with the cursor. cursor: ${cursor}`,
      lines.length === 0 ? 'No message was examined.' : untrusted(lines.join('\n')),
    )
  }
}

/** A wait of the client for a part of a message, with the message. */
async function partOf(
  wait: (match: (message: Message) => boolean) => Promise<string>,
  name: 'code' | 'link',
): Promise<Found> {
  let message: Message | undefined
  const value = await wait((each) => {
    message = each
    return true
  })
  if (message === undefined) throw new Error('the client returned a part without a message')
  const { id, received_at, subject, sender, cursor } = message
  const content = {
    [name]: oneLine(value, Infinity),
    subject: subject === null ? null : oneLine(subject),
    sender: oneLine(sender),
  }
  const lines = [
    `${name}: ${content[name]}`,
    `Subject: ${content.subject ?? '(none)'}`,
    `From: ${content.sender}`,
  ]
  return {
    cursor,
    found: { message_id: id, received_at, untrusted_content: content },
    text: `Message ${id}, received ${received_at}.\n${untrusted(lines.join('\n'))}`,
  }
}
