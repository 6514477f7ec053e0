import { Option, type Command } from 'commander'
import {
  inboxPath,
  label,
  pairsOf,
  passwordOption,
  wholeNumber,
  withFilters,
  type Filters,
} from './arguments.js'
import { EXIT, Failure } from './failure.js'
import { waitCommand, messageTable, messageText, type MessageJson } from './messages.js'
import { facts, table } from './printing.js'
import type { Session } from './api-client.js'

interface InboxJson {
  id: string
  address: string
  state: string
  labels: Record<string, string>
  message_count: number
  created_at: string
  password_protected?: boolean
  name?: string | null
  expires_at?: string
  ended_at?: string
  /** Only in the answer that creates the inbox. */
  password?: string
}

/** The API's maximum page sizes. */
const INBOXES_A_PAGE = 1_000
const MESSAGES_A_PAGE = 100

/** `mayfly inbox …` */
export function inboxCommands(program: Command, session: Session): void {
  const inbox = program.command('inbox').description('manage inboxes and read their mail')
  createCommand(inbox, session)
  listCommand(inbox, session)
  readCommand(inbox, session)
  waitCommand(inbox, session)
  deleteCommand(inbox, session)
}

function createCommand(inbox: Command, session: Session): void {
  inbox
    .command('create')
    .description('create an inbox; prints its address')
    .option('--duration <duration>', 'lifetime, such as 30m, 24h, 7d or 2w')
    .option('--name <name>')
    .option('--label <name:value>', 'label to search by; can be repeated', label)
    .option('--protected', 'protect its mail with a password, which is shown only once')
    .action(
      async (options: {
        duration?: string
        name?: string
        label?: readonly string[]
        protected?: boolean
      }) => {
        const { duration, name, protected: isProtected } = options
        const labels = pairsOf(options.label ?? [])
        const body = { duration, name, labels, password_protected: isProtected }
        const made = await session.api().post<InboxJson>('/v1/inboxes', { body })
        session.print(made, () => inboxText(made))
      },
    )
}

function listCommand(inbox: Command, session: Session): void {
  inbox
    .command('list')
    .description('list inboxes, newest first')
    .addOption(new Option('--state <state>').choices(['active', 'deleted', 'expired']).default('active'))
    .option('--label <name:value>', 'can be repeated: all must match', label)
    .option('--limit <count>', 'maximum number of inboxes', wholeNumber, 25)
    .action(async (options: { state: string; label?: readonly string[]; limit: number }) => {
      const { state, label: labels, limit: most } = options
      const query = { state, ...(labels === undefined ? {} : { label: labels }) }
      const pages = { most, pageSize: INBOXES_A_PAGE }
      const found = await session.api().list<InboxJson>('/v1/inboxes', pages, { query })
      session.print(found, () =>
        table(
          ['id', 'address', 'mails', 'created', state === 'active' ? 'expires' : 'ended', 'labels'],
          found.map((each) => [
            each.id,
            each.address,
            String(each.message_count),
            each.created_at,
            each.expires_at ?? each.ended_at ?? '-',
            labelsText(each.labels),
          ]),
        ),
      )
    })
}

type ReadOptions = Filters & {
  order: string
  limit: number
  raw?: boolean
  attachment?: string
  password?: string
}

function readCommand(inbox: Command, session: Session): void {
  withFilters(inbox.command('read'))
    .description('read an inbox: its messages, or one of them')
    .argument('<inbox>', 'inbox id')
    .argument('[message]', 'message id')
    .addOption(new Option('--order <order>', 'order of the list').choices(['asc', 'desc']).default('asc'))
    .option('--limit <count>', 'maximum number of messages', wholeNumber, 25)
    .addOption(new Option('--raw', "write the message's source, byte for byte").conflicts('attachment'))
    .option('--attachment <index>', 'write an attachment of the message')
    .addOption(passwordOption())
    .action(async (inboxId: string, messageId: string | undefined, options: ReadOptions) => {
      const { order, limit: most, raw, attachment, password, ...filters } = options
      const path = `${inboxPath(inboxId)}/messages`
      const api = session.api()
      if (messageId === undefined) {
        if (raw === true || attachment !== undefined) {
          throw new Failure(EXIT.usage, '--raw and --attachment need the id of one message')
        }
        const asked = { query: { ...filters, order }, password }
        const messages = await api.list<MessageJson>(path, { most, pageSize: MESSAGES_A_PAGE }, asked)
        session.print(messages, () => messageTable(messages))
        return
      }
      const one = `${path}/${encodeURIComponent(messageId)}`
      if (raw === true) session.write(await api.bytes(`${one}/raw`, { password }))
      else if (attachment !== undefined) {
        session.write(await api.bytes(`${one}/attachments/${encodeURIComponent(attachment)}`, { password }))
      } else {
        const message = await api.get<MessageJson>(one, { query: { raw: 'false' }, password })
        session.print(message, () => messageText(message))
      }
    })
}

function deleteCommand(inbox: Command, session: Session): void {
  inbox
    .command('delete')
    .description('permanently delete an inbox with all its mail, or one message')
    .argument('<inbox>', 'inbox id')
    .argument('[message]', 'message id')
    .addOption(passwordOption())
    .action(async (inboxId: string, messageId: string | undefined, { password }: { password?: string }) => {
      const path =
        messageId === undefined
          ? inboxPath(inboxId)
          : `${inboxPath(inboxId)}/messages/${encodeURIComponent(messageId)}`
      const deleted = await session.api().delete<{ id: string; deleted_at: string }>(path, { password })
      session.print(deleted, () => facts({ deleted: deleted.id, at: deleted.deleted_at }))
    })
}

function inboxText(inbox: InboxJson): string {
  return facts({
    inbox: inbox.id,
    address: inbox.address,
    name: inbox.name,
    labels: Object.keys(inbox.labels).length === 0 ? null : labelsText(inbox.labels),
    expires: inbox.expires_at,
    password: inbox.password,
  })
}

function labelsText(labels: Record<string, string>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}:${value}`)
    .join(' ')
}
