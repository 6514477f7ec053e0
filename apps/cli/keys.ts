import { Option, type Command } from 'commander'
import type { Schemas } from '#clients/typescript/src/options.js'
import { accountPath, wholeNumber } from './arguments.js'
import { requireOwnNode } from './failure.js'
import { facts, table } from './printing.js'
import type { Session } from './session.js'

/** The secret is only in the answer that issues or rotates the key. */
type Key = Schemas['Key'] & Partial<Pick<Schemas['KeyWithSecret'], 'secret'>>

interface IssueOptions {
  environment: string
  scope?: string[]
  rateLimit?: number
  expires?: string
  personal?: boolean
  account?: string
}

/** `mayfly key …` */
export function keyCommands(program: Command, session: Session): void {
  const key = program.command('key').description("manage an account's keys; needs the scope admin")

  key
    .command('issue')
    .description('issue a key; prints its secret, which is shown only once')
    .argument('<name>')
    .requiredOption('--environment <environment>', 'environment whose inboxes the key can access')
    .option('--scope <scope...>', 'inboxes (default), read, audit, admin, operator')
    .option('--rate-limit <count>', "requests per minute; default: the plan's", wholeNumber())
    .option('--expires <when>', 'a time as in RFC 3339, or never; default: in a year')
    .option('--personal', 'a key of the member whose personal key makes the request, not of the account')
    .option('--account <account>', 'issue it for another account; needs the scope operator')
    .action((name: string, options: IssueOptions) => {
      const { scope: scopes, account, expires, personal, ...others } = options
      const owner = personal === true ? { owner: 'personal' } : {}
      const path = account === undefined ? '/v1/keys' : `${accountPath(account)}/keys`
      return session.print(
        session.api().post<Key>(path, { name, scopes, ...owner, ...expiryOf(expires), ...others }),
        keyText,
      )
    })

  key
    .command('recover')
    .description(
      'issue a key with every scope while Mayfly is stopped, if the first key was lost (embedded engine)',
    )
    .addOption(new Option('--data-dir <folder>', 'the data folder').env('MAYFLY_DATA_DIR').default('./data'))
    .action(async ({ dataDir }: { dataDir: string }) => {
      const { keyId: id, accountId: account_id, environment, secret } = await recover(dataDir)
      const text = facts({ 'key id': id, account: account_id, environment, secret })
      const hint = 'The secret is the API key: set MAYFLY_KEY to it. It is shown only once.'
      await session.print({ id, account_id, environment, secret }, () => `${text}\n\n${hint}`)
    })

  key
    .command('rotate')
    .description('replace the secret of a key; prints the new one, which is shown only once')
    .argument('<key>', 'key id')
    .option('--grace <duration>', 'how long the old secret stays valid; default: it ends at once')
    .option('--expires <when>', 'a time as in RFC 3339, or never; default: unchanged')
    .action((id: string, { grace, expires }: { grace?: string; expires?: string }) =>
      session.print(
        session.api().post<Key>(`${keyPath(id)}/rotate`, { grace, ...expiryOf(expires) }),
        keyText,
      ),
    )

  key
    .command('revoke')
    .description('revoke a key permanently')
    .argument('<key>', 'key id')
    .action((id: string) => session.print(session.api().delete<Key>(keyPath(id)), keyText))

  key
    .command('list')
    .description("list the account's keys")
    .option('--limit <count>', 'maximum number of keys', wholeNumber(), 1_000)
    .action((options: { limit: number }) =>
      session.print(session.api().list<Key>('/v1/keys', options), keysText),
    )
}

function expiryOf(when: string | undefined): { expiresAt?: string | null } {
  return when === undefined ? {} : { expiresAt: when === 'never' ? null : when }
}

function keyPath(id: string): string {
  return `/v1/keys/${encodeURIComponent(id)}`
}

async function recover(dataDir: string) {
  requireOwnNode('key recover')
  const { recoverKey } = await import('#libs/engines/first-key.js')
  return recoverKey(dataDir, () => new Date())
}

function keysText(keys: readonly Key[]): string {
  return table(
    ['id', 'environment', 'state', 'scopes', 'last used', 'expires', 'name'],
    keys.map((key) => [
      ...[key.id, key.environment, key.state, key.scopes, key.last_used_at, key.expires_at, key.name],
    ]),
  )
}

export function keyText({ id, ...key }: Key): string {
  return facts({ key_id: id, ...key })
}
