import type { Command } from 'commander'
import type { Session } from './api-client.js'
import { wholeNumber } from './arguments.js'
import { facts, table } from './printing.js'

interface AccountJson {
  id: string
  name: string
  plan: string
  limits: {
    requests_per_minute: number
    retention: string
    max_message_bytes: number
    max_messages: number
  } | null
  environments: string[]
  created_at: string
  /** Only in the answers that open the account or change its plan. */
  key?: { id: string; environment: string; scopes: string[]; secret: string } | null
}

interface Limits {
  requestsPerMinute?: number
  retention?: string
  maxMessages?: number
}

/** `mayfly account …` */
export function accountCommands(program: Command, session: Session): void {
  const account = program.command('account').description('show accounts; operators also open and change them')

  withLimits(account.command('open'))
    .description('open an account; prints its first key, which is shown only once')
    .argument('<name>')
    .requiredOption('--plan <plan>', 'free, starter, pro, enterprise or another configured plan')
    .action((name: string, { plan, ...limits }: { plan: string } & Limits) => {
      const body = { name, plan, ...limitsJson(limits) }
      return session.print(session.api().call<AccountJson>('POST', '/v1/accounts', { body }), accountText)
    })

  withLimits(account.command('plan'))
    .description("change an account's plan")
    .argument('<account>', 'account id')
    .argument('<plan>')
    .action((id: string, plan: string, limits: Limits) => {
      const body = { plan, ...limitsJson(limits) }
      return session.print(session.api().call<AccountJson>('PATCH', accountPath(id), { body }), accountText)
    })

  account
    .command('list')
    .description('list all accounts')
    .option('--limit <count>', 'maximum number of accounts', wholeNumber(), 1_000)
    .action(({ limit }: { limit: number }) =>
      session.print(session.api().list<AccountJson>('/v1/accounts', limit), (accounts) =>
        table(
          ['id', 'plan', 'created', 'name'],
          accounts.map(({ id, plan, created_at: created, name }) => [id, plan, created, name]),
        ),
      ),
    )

  account
    .command('show')
    .description("show an account, by default the key's own")
    .argument('[account]', 'account id; for other accounts, the key needs the scope operator')
    .action((id: string | undefined) => {
      const path = id === undefined ? '/v1/account' : accountPath(id)
      return session.print(session.api().call<AccountJson>('GET', path), accountText)
    })
}

function accountPath(id: string): string {
  return `/v1/accounts/${encodeURIComponent(id)}`
}

function withLimits(command: Command): Command {
  return command
    .option(
      '--requests-per-minute <count>',
      'requests per minute of each key, on plans with limits per account',
      wholeNumber(),
    )
    .option('--retention <duration>', 'maximum lifetime of an inbox, on the same plans')
    .option(
      '--max-messages <count>',
      'maximum number of messages in an inbox, on the same plans',
      wholeNumber(),
    )
}

function limitsJson({ requestsPerMinute, retention, maxMessages }: Limits): object {
  const limits = { requests_per_minute: requestsPerMinute, retention, max_messages: maxMessages }
  return Object.values(limits).every((limit) => limit === undefined) ? {} : { limits }
}

function accountText({ limits, key, ...account }: AccountJson): string {
  return facts({
    account: account.id,
    name: account.name,
    plan: account.plan,
    'requests per minute': limits?.requests_per_minute,
    retention: limits?.retention,
    'largest mail': limits === null ? null : `${limits.max_message_bytes} bytes`,
    'mails per inbox': limits?.max_messages,
    environments: account.environments.join(', '),
    created: account.created_at,
    key: key?.id,
    'of environment': key?.environment,
    scopes: key?.scopes.join(', '),
    secret: key?.secret,
  })
}
