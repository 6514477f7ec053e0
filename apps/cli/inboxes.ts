import { Option, type Command } from 'commander'
import type { Schemas } from '#clients/typescript/src/options.js'
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
import { messageTable, messageText, waitCommand } from './messages.js'
import { facts, table } from './printing.js'
import type { Session } from './session.js'

/** The API's maximum page size for inboxes. */
export const MAX_PAGE_SIZE = 1_000

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

interface InboxOptions {
  duration?: string
  name?: string
  label?: readonly string[]
}

function createCommand(inbox: Command, session: Session): void {
  inbox
    .command('create')
    .description('create an inbox; prints its address')
    .option('--duration <duration>', 'lifetime, such as 30m, 24h, 7d or 2w')
    .option('--name <name>')
    .option('--label <name:value>', 'label to search by; can be repeated', label)
    .option('--protected', 'protect its mail with a password, which is shown only once')
    .action((options: InboxOptions & { protected?: boolean }) => {
      const { label: labels = [], protected: passwordProtected, ...others } = options
      const body = { ...others, labels: pairsOf(labels), passwordProtected }
      return session.print(session.api().post<Schemas['CreatedInbox']>('/v1/inboxes', body), inboxText)
    })
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
    .action((inboxId: string, { label: labels, ...others }: InboxOptions & { password?: string }) => {
      const body = { ...others, labels: labels && pairsOf(labels) }
      return session.print(session.api().post<Schemas['Inbox']>(inboxPath(inboxId), body, 'PATCH'), inboxText)
    })
}

type ListedInbox = Schemas['Inbox'] | Schemas['EndedInbox']

function listCommand(inbox: Command, session: Session): void {
  inbox
    .command('list')
    .description('list inboxes, newest first')
    .addOption(new Option('--state <state>').choices(['active', 'deleted', 'expired']).default('active'))
    .option('--label <name:value>', 'can be repeated: all must match', label)
    .option('--address <address>', 'only the newest inbox with this address')
    .option('--limit <count>', 'maximum number of inboxes', wholeNumber(), 25)
    .action((options: { state: string; label?: readonly string[]; address?: string; limit: number }) => {
      const found = session.api().list<ListedInbox>('/v1/inboxes', options, MAX_PAGE_SIZE)
      const end = options.state === 'active' ? 'expires' : 'ended'
      return session.print(found, (inboxes) =>
        table(
          ['id', 'address', 'mails', 'created', end, 'labels'],
          inboxes.map((each) => [
            ...[each.id, each.address, each.message_count, each.created_at],
            ...['ended_at' in each ? each.ended_at : each.expires_at, each.labels],
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
    .option('--limit <count>', 'maximum number of messages', wholeNumber(), 25)
    .addOption(new Option('--raw', "write the message's source, byte for byte").conflicts('attachment'))
    .option('--attachment <index>', 'write an attachment of the message')
    .addOption(passwordOption())
    .action(async (inboxId: string, messageId: string | undefined, options: ReadOptions) => {
      const { raw, attachment, password, ...query } = options
      const path = `${inboxPath(inboxId)}/messages`
      const api = session.api()
      if (messageId === undefined) {
        if (raw === true || attachment !== undefined) {
          throw new Failure(EXIT.usage, '--raw and --attachment need the id of one message')
        }
        const messages = api.list<Schemas['Message']>(path, { ...query, password })
        await session.print(messages, messageTable)
        return
      }
      const one = `${path}/${encodeURIComponent(messageId)}`
      if (raw === true) session.write(await api.bytes(`${one}/raw`, { password }))
      else if (attachment !== undefined) {
        session.write(await api.bytes(`${one}/attachments/${encodeURIComponent(attachment)}`, { password }))
      } else {
        await session.print(api.get<Schemas['Message']>(one, { raw: false, password }), messageText)
      }
    })
}

function historyCommand(inbox: Command, session: Session): void {
  inbox
    .command('history')
    .description('list what happened to an inbox, also after its end')
    .argument('<inbox>', 'inbox id')
    .addOption(new Option('--order <order>', 'order of the list').choices(['asc', 'desc']).default('asc'))
    .option('--limit <count>', 'maximum number of events', wholeNumber(), 100)
    .action((inboxId: string, options: { order: string; limit: number }) => {
      const events = session.api().list<Schemas['Event']>(`${inboxPath(inboxId)}/history`, options)
      return session.print(events, (shown) =>
        table(
          ['time', 'event', 'message', 'by', 'changed'],
          shown.map((event) => [
            ...[event.time, event.type, event.message_id, event.actor ?? event.key_id, event.changed],
          ]),
        ),
      )
    })
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
      const { owner = false, ...others } = options
      const body = { access: owner ? 'owner' : 'read', ...others }
      const issued = session.api().post<Schemas['InboxTokenWithSecret']>(`${inboxPath(inboxId)}/tokens`, body)
      return session.print(issued, facts)
    })
}

function deleteCommand(inbox: Command, session: Session): void {
  inbox
    .command('delete')
    .description('permanently delete an inbox with all its mail, or one message')
    .argument('<inbox>', 'inbox id')
    .argument('[message]', 'message id')
    .addOption(passwordOption())
    .action((inboxId: string, messageId: string | undefined, options: { password?: string }) => {
      const message = messageId === undefined ? '' : `/messages/${encodeURIComponent(messageId)}`
      const deleted = session
        .api()
        .delete<Schemas['DeletedMessage']>(`${inboxPath(inboxId)}${message}`, options)
      return session.print(deleted, facts)
    })
}

function inboxText({ id, ...inbox }: Schemas['Inbox'] & { password?: string }): string {
  return facts({ inbox: id, ...inbox })
}
