import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { z } from 'zod'
import type { Schemas } from '#clients/typescript/src/mayfly.js'
import { inboxId, labels, password } from './arguments.js'
import { oneLine } from './mail-content.js'
import { result, runTool, type Connection } from './tool-call.js'

const Inbox = z.object({
  inbox_id: z.string(),
  address: z.string(),
  state: z.enum(['active', 'deleted', 'expired']),
  name: z.string().nullable(),
  labels: z.record(z.string(), z.string()),
  password_protected: z.boolean().nullable().describe('Null after the end of the inbox.'),
  message_count: z.number(),
  created_at: z.string(),
  ends_at: z.string().describe('When it expires, or when it ended.'),
})

const CREATE_INBOX = {
  title: 'Create an inbox',
  description:
    'Creates an email inbox with a new address, generated unless given. It is deleted, with all its mail, when it expires.',
  inputSchema: z.strictObject({
    duration: z
      .string()
      .max(20)
      .optional()
      .describe('The lifetime, such as 30m, 24h, 7d or 2w; 24h by default.'),
    address: z.string().max(320).optional().describe('Its address, in a domain of the account.'),
    name: z.string().max(200).optional().describe('A name to show to people.'),
    labels: labels.describe('Labels to find the inbox by.'),
    password_protected: z.boolean().optional().describe('Whether reading its mail requires a password.'),
  }),
  outputSchema: Inbox.extend({
    password: z.string().optional().describe('Only in this result. Other tools need it for this inbox.'),
  }),
  annotations: {
    readOnlyHint: false,
    destructiveHint: false,
    idempotentHint: false,
    openWorldHint: false,
  },
}

const LIST_INBOXES = {
  title: 'List inboxes',
  description: 'Lists the inboxes that the API key can see, newest first.',
  inputSchema: z.strictObject({
    state: z.enum(['active', 'deleted', 'expired']).optional().describe('active by default.'),
    labels: labels.describe('Only inboxes with all of these labels.'),
    address: z.string().max(320).optional().describe('Only the newest inbox with this address.'),
    limit: z.number().int().min(1).max(100).default(25),
  }),
  outputSchema: z.object({ inboxes: z.array(Inbox) }),
  annotations: { readOnlyHint: true, openWorldHint: false },
}

const DELETE_INBOX = {
  title: 'Delete an inbox',
  description: 'Deletes an inbox and all its mail permanently.',
  inputSchema: z.strictObject({ inbox_id: inboxId, password }),
  outputSchema: z.object({ inbox_id: z.string(), address: z.string(), deleted_at: z.string() }),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
}

/** create_inbox, list_inboxes and delete_inbox. */
export function addInboxTools(server: McpServer, connection: Connection): void {
  server.registerTool(
    'create_inbox',
    CREATE_INBOX,
    ({ password_protected: passwordProtected, ...options }, { signal }) =>
      runTool(connection, signal, async ({ mayfly }) => {
        const inbox = await mayfly.inboxes.create({ ...options, passwordProtected, signal })
        const created = inboxOf(inbox)
        const secret = inbox.password === undefined ? {} : { password: inbox.password }
        const note = inbox.password === undefined ? '' : ` Its password is ${inbox.password}.`
        return result({ ...created, ...secret }, `Created ${inboxText(created)}.${note}`)
      }),
  )

  server.registerTool('list_inboxes', LIST_INBOXES, (query, { signal }) =>
    runTool(connection, signal, async ({ mayfly }) => {
      const found = await mayfly.inboxes.list({ ...query, signal })
      const inboxes = found.map(inboxOf)
      const lines = inboxes.map((inbox) => `${inboxText(inbox)}, ${inbox.message_count} messages`)
      return result({ inboxes }, `${inboxes.length} inboxes`, ...lines)
    }),
  )

  server.registerTool('delete_inbox', DELETE_INBOX, ({ inbox_id: id, password }, { signal }) =>
    runTool(connection, signal, async ({ mayfly }) => {
      const { address, deleted_at } = await mayfly.inboxes.delete(id, { password, signal })
      return result({ inbox_id: id, address, deleted_at }, `Deleted ${id}, ${address}, at ${deleted_at}.`)
    }),
  )
}

function inboxOf(inbox: Schemas['Inbox'] | Schemas['EndedInbox']): z.infer<typeof Inbox> {
  const { id, address, state, labels, message_count, created_at } = inbox
  const isActive = inbox.state === 'active'
  return {
    inbox_id: id,
    ...{ address, state, labels, message_count, created_at },
    name: isActive ? inbox.name : null,
    password_protected: isActive ? inbox.password_protected : null,
    ends_at: isActive ? inbox.expires_at : inbox.ended_at,
  }
}

function inboxText({ inbox_id: id, address, state, name, ends_at: endsAt }: z.infer<typeof Inbox>): string {
  const called = name === null ? '' : ` (${oneLine(name)})`
  return `${id}${called}, ${address}, ${state === 'active' ? 'until' : `${state} at`} ${endsAt}`
}
