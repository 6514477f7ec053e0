import { Option, type Command } from 'commander'
import type { Session } from './api-client.js'
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
import { messageTable, messageText, waitCommand, type MessageJson } from './messages.js'
import { facts, table } from './printing.js'

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

/** The API's maximum page size for inboxes. */
const MAX_PAGE_SIZE = 1_000

/** `mayfly inbox …` */
export function inboxCommands(program: Command, session: Session): void {
  const inbox = program.command('inbox').description('manage inboxes and read their mail')
  createCommand(inbox, session)
  updateCommand(inbox, session)
  listCommand(inbox, session)
  readCommand(inbox, session)
  waitCommand(inbox, session)
  historyCommand(inbox, session)
  shareCommand(inbox, session)
  deleteCommand(inbox, session)
}

interface CreateOptions {
  duration?: string
  name?: string
  label?: readonly string[]
  protected?: boolean
}

function createCommand(inbox: Command, session: Session): void {
  inbox
    .command('create')
    .description('create an inbox; prints its address')
    .option('--duration <duration>', 'lifetime, such as 30m, 24h, 7d or 2w')
    .option('--name <name>')
    .option('--label <name:value>', 'label to search by; can be repeated', label)
    .option('--protected', 'protect its mail with a password, which is shown only once')
    .action((options: CreateOptions) => {
      const { duration, name, protected: isProtected } = options
      const body = { duration, name, labels: pairsOf(options.label ?? []), password_protected: isProtected }
      return session.print(session.api().call<InboxJson>('POST', '/v1/inboxes', { body }), inboxText)
    })
}

interface UpdateOptions {
  duration?: string
  name?: string
  label?: readonly string[]
  password?: string
}

function updateCommand(inbox: Command, session: Session): void {
  inbox
    .command('update')
    .description('change when an inbox expires, its name or its labels')
    .argument('<inbox>', 'inbox id')
    .option('--duration <duration>', 'lifetime from its creation, such as 30m, 24h, 7d or 2w')
    .option('--name <name>')
    .option('--label <name:value>', 'replaces all labels; can be repeated', label)
    .addOption(passwordOption())
    .action((inboxId: string, { label: labels, password, ...given }: UpdateOptions) => {
      const body = { ...given, labels: labels && pairsOf(labels) }
      const updated = session.api().call<InboxJson>('PATCH', inboxPath(inboxId), { body, password })
      return session.print(updated, inboxText)
    })
}

function listCommand(inbox: Command, session: Session): void {
  inbox
    .command('list')
    .description('list inboxes, newest first')
    .addOption(new Option('--state <state>').choices(['active', 'deleted', 'expired']).default('active'))
    .option('--label <name:value>', 'can be repeated: all must match', label)
    .option('--limit <count>', 'maximum number of inboxes', wholeNumber(), 25)
    .action(({ limit, ...query }: { state: string; label?: readonly string[]; limit: number }) => {
      const found = session.api().list<InboxJson>('/v1/inboxes', limit, { query }, MAX_PAGE_SIZE)
      const names = [
        'id',
        'address',
        'mails',
        'created',
        query.state === 'active' ? 'expires' : 'ended',
        'labels',
      ]
      return session.print(found, (inboxes) => table(names, inboxes.map(inboxRow)))
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
    .option('--limit <count>', 'maximum number of messages', wholeNumber(), 25)
    .addOption(new Option('--raw', "write the message's source, byte for byte").conflicts('attachment'))
    .option('--attachment <index>', 'write an attachment of the message')
    .addOption(passwordOption())
    .action(async (inboxId: string, messageId: string | undefined, options: ReadOptions) => {
      const { order, limit, raw, attachment, password, ...filters } = options
      const path = `${inboxPath(inboxId)}/messages`
      const api = session.api()
      if (messageId === undefined) {
        if (raw === true || attachment !== undefined) {
          throw new Failure(EXIT.usage, '--raw and --attachment need the id of one message')
        }
        const messages = api.list<MessageJson>(path, limit, { query: { ...filters, order }, password })
        await session.print(messages, messageTable)
        return
      }
      const one = `${path}/${encodeURIComponent(messageId)}`
      if (raw === true) session.write(await api.bytes(`${one}/raw`, { password }))
      else if (attachment !== undefined) {
        session.write(await api.bytes(`${one}/attachments/${encodeURIComponent(attachment)}`, { password }))
      } else {
        const message = api.call<MessageJson>('GET', one, { query: { raw: 'false' }, password })
        await session.print(message, messageText)
      }
    })
}

interface EventJson {
  type: string
  time: string
  message_id: string | null
  key_id: string | null
  actor: string | null
  changed: string[] | null
}

function historyCommand(inbox: Command, session: Session): void {
  inbox
    .command('history')
    .description('list what happened to an inbox, also after its end')
    .argument('<inbox>', 'inbox id')
    .addOption(new Option('--order <order>', 'order of the list').choices(['asc', 'desc']).default('asc'))
    .option('--limit <count>', 'maximum number of events', wholeNumber(), 100)
    .action((inboxId: string, { order, limit }: { order: string; limit: number }) => {
      const events = session
        .api()
        .list<EventJson>(`${inboxPath(inboxId)}/history`, limit, { query: { order } })
      const rowOf = ({ time, type, message_id: message, actor, key_id: key, changed }: EventJson) => [
        ...[time, type, message ?? '-', actor ?? key ?? '-', changed?.join(', ') ?? '-'],
      ]
      return session.print(events, (shown) =>
        table(['time', 'event', 'message', 'by', 'changed'], shown.map(rowOf)),
      )
    })
}

interface TokenJson {
  id: string
  token: string
  access: string
  expires_at: string
}

function shareCommand(inbox: Command, session: Session): void {
  inbox
    .command('share')
    .description('issue a token that can read this inbox and nothing else; it is shown only once')
    .argument('<inbox>', 'inbox id')
    .option('--expires-in <duration>', 'how long it is valid, such as 30m; default: until the inbox expires')
    .option('--owner', 'the token may also delete the inbox')
    .addOption(passwordOption())
    .action((inboxId: string, options: { expiresIn?: string; owner?: boolean; password?: string }) => {
      const { expiresIn: expires_in, owner = false, password } = options
      const body = { access: owner ? 'owner' : 'read', expires_in }
      const path = `${inboxPath(inboxId)}/tokens`
      const issued = session.api().call<TokenJson>('POST', path, { body, password })
      return session.print(issued, ({ id, token, access, expires_at: expires }) =>
        facts({ id, token, access, expires }),
      )
    })
}

function deleteCommand(inbox: Command, session: Session): void {
  inbox
    .command('delete')
    .description('permanently delete an inbox with all its mail, or one message')
    .argument('<inbox>', 'inbox id')
    .argument('[message]', 'message id')
    .addOption(passwordOption())
    .action((inboxId: string, messageId: string | undefined, { password }: { password?: string }) => {
      const message = messageId === undefined ? '' : `/messages/${encodeURIComponent(messageId)}`
      const path = inboxPath(inboxId) + message
      const deleted = session.api().call<{ id: string; deleted_at: string }>('DELETE', path, { password })
      return session.print(deleted, ({ id, deleted_at: at }) => facts({ deleted: id, at }))
    })
}

function inboxRow(inbox: InboxJson): string[] {
  const ends = inbox.expires_at ?? inbox.ended_at ?? '-'
  const { id, address, message_count: mails, created_at: created, labels } = inbox
  return [id, address, String(mails), created, ends, labelsText(labels)]
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
