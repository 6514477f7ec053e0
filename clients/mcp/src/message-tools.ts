import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { z } from 'zod'
import { cursor, extract, filters, inboxIdOrAddress, messageId, password } from './arguments.js'
import {
  FullMessage,
  fullMessage,
  ListedMessage,
  listedMessage,
  listText,
  messageText,
  NOTICE,
} from './mail-content.js'
import { inboxBy, READS_MAIL, result, runTool, type Connection } from './tool-call.js'

const LIST_MESSAGES = {
  title: 'List messages',
  description:
    'Lists the messages of an inbox, without their whole text. To get later ones, pass the cursor of the result.',
  inputSchema: z.strictObject({
    ...{ inbox_id: inboxIdOrAddress, password, ...filters, cursor },
    has_code: z.boolean().optional().describe('Whether it has a one-time code.'),
    has_link: z.boolean().optional().describe('Whether it has a link.'),
    order: z.enum(['asc', 'desc']).default('asc').describe('asc lists the oldest messages first.'),
    limit: z.number().int().min(1).max(50).default(20),
  }),
  outputSchema: z.object({
    notice: z.string(),
    messages: z.array(ListedMessage),
    has_more: z.boolean().describe('Whether more messages match now.'),
    cursor: z
      .string()
      .nullable()
      .describe('The position after these messages; with order desc, after all messages.'),
  }),
  annotations: READS_MAIL,
}

const GET_MESSAGE = {
  title: 'Read a message',
  description:
    'Reads a message: its text, codes, links, and what is attached. HTML is returned as its visible text.',
  inputSchema: z.strictObject({
    inbox_id: inboxIdOrAddress,
    message_id: messageId,
    password,
    extract,
  }),
  outputSchema: z.object({ notice: z.string(), message: FullMessage }),
  annotations: READS_MAIL,
}

/** list_messages and get_message. */
export function addMessageTools(server: McpServer, connection: Connection): void {
  server.registerTool(
    'list_messages',
    LIST_MESSAGES,
    (
      { inbox_id: id, password, cursor, has_code: hasCode, has_link: hasLink, order, limit, ...texts },
      { signal },
    ) =>
      runTool(connection, signal, async (call) => {
        const inbox = await inboxBy(call, id, { password })
        const query = { ...texts, hasCode, hasLink, order, limit, cursor, signal }
        const messages = (await inbox.listMessages(query)).map(listedMessage)
        const { cursor: after, hasNextPage } = call.answers
        const listed = { notice: NOTICE, messages, has_more: hasNextPage, cursor: after }
        const count = `${messages.length} messages${hasNextPage ? ', and more' : ''}. cursor: ${after}`
        return messages.length === 0 ? result(listed, count) : result(listed, count, listText(messages))
      }),
  )

  server.registerTool(
    'get_message',
    GET_MESSAGE,
    ({ inbox_id: id, message_id: mailId, password, extract }, { signal }) =>
      runTool(connection, signal, async (call) => {
        const inbox = await inboxBy(call, id, { password })
        const message = fullMessage(await inbox.getMessage(mailId, { signal, extract }))
        return result({ notice: NOTICE, message }, messageText(message))
      }),
  )
}
