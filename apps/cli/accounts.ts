import { Argument, type Command } from 'commander'
import type { Schemas } from '#clients/typescript/src/options.js'
import type { AccountLimits } from '#libs/domain/account/access.js'
import { kindOf, QUOTAS } from '#libs/domain/account/quota.js'
import { snakeCase } from '#libs/domain/event-sourcing/declare.js'
import { accountPath, wholeNumber } from './arguments.js'
import { keyText } from './keys.js'
import { facts, table } from './printing.js'
import type { Session } from './session.js'

/** The key is only in the answer that opens the account. */
type Account = Schemas['Account'] & Partial<Pick<Schemas['AccountWithKey'], 'key'>>

type Activity = Schemas['Activity']

type Limits = Omit<AccountLimits, 'retention'> & { retention?: string }

/** `mayfly account …` */
export function accountCommands(program: Command, session: Session): void {
  const account = program.command('account').description('show accounts; operators also open and change them')

  withLimits(account.command('open'))
    .description('open an account; prints its first key, which is shown only once')
    .argument('<name>')
    .requiredOption('--plan <plan>', 'free, starter, pro, enterprise or another configured plan')
    .action((name: string, { plan, ...limits }: { plan: string } & Limits) => {
      const body = { name, plan, limits: limitsJson(limits) }
      return session.print(session.api().post<Account>('/v1/accounts', body), accountText)
    })

  withLimits(account.command('plan'))
    .description("change an account's plan")
    .argument('<account>', 'account id')
    .argument('<plan>')
    .action((id: string, plan: string, limits: Limits) => {
      const body = { plan, limits: limitsJson(limits) }
      return session.print(session.api().post<Account>(accountPath(id), body, 'PATCH'), accountText)
    })

  accessCommands(account, session)

  account
    .command('sign-in')
    .description("set how people sign in to the console for the key's own account")
    .addArgument(
      new Argument('<how>', 'also with links and keys, or only with an identity provider').choices([
        'any',
        'provider',
      ]),
    )
    .action((signIn: string) =>
      session.print(session.api().post<Account>('/v1/account', { sign_in: signIn }, 'PATCH'), accountText),
    )

  account
    .command('list')
    .description('list all accounts')
    .option('--limit <count>', 'maximum number of accounts', wholeNumber(), 1_000)
    .action((options: { limit: number }) =>
      session.print(session.api().list<Account>('/v1/accounts', options), (accounts) =>
        table(
          ['id', 'plan', 'state', 'created', 'name'],
          accounts.map(({ id, plan, state, created_at: created, name }) => [id, plan, state, created, name]),
        ),
      ),
    )

  account
    .command('show')
    .description("show an account, by default the key's own")
    .argument('[account]', 'account id; for other accounts, the key needs the scope operator')
    .action((id: string | undefined) => {
      const path = id === undefined ? '/v1/account' : accountPath(id)
      return session.print(session.api().get<Account>(path), accountText)
    })
}

/** `mayfly activity` */
export function activityCommand(program: Command, session: Session): void {
  program
    .command('activity')
    .description('list who changed what in the account, newest first; needs the scope admin or audit')
    .option('--actor <id>', 'only by this key, member, session or token')
    .option(
      '--type <action>',
      'only this action, such as member.changed, or all that begin with it, such as member',
    )
    .option('--environment <environment>', 'only in this environment')
    .option('--subject <id>', 'only of this inbox, key, member, domain or webhook')
    .option('--from <time>', 'only at this time or later, such as 2026-11-21T08:00:00Z')
    .option('--to <time>', 'only before this time')
    .option('--limit <count>', 'maximum number of changes', wholeNumber(), 100)
    .action((options: { limit: number }) =>
      session.print(session.api().list<Activity>('/v1/activity', options), (entries) =>
        table(
          ['time', 'who', 'action', 'subject', 'changes'],
          entries.map(({ time, actor, action, subject, outcome, changes }) => [
            ...[time, actor.name ?? actor.id ?? actor.type],
            ...[outcome === 'ignored' ? `${action} (ignored)` : action, subject],
            changes
              .map(({ field, from, to }) =>
                from === null && to === null
                  ? field
                  : `${field}: ${JSON.stringify(from)} → ${JSON.stringify(to)}`,
              )
              .join(', '),
          ]),
        ),
      ),
    )
}

function accessCommands(account: Command, session: Session): void {
  const about = {
    suspend: 'refuse all requests of an account, and its mail; nothing is erased',
    resume: 'accept the requests and the mail of a suspended account again',
    close: 'close an account for good: its keys, domains, webhooks and inboxes end, with all mail',
  }
  for (const [name, description] of Object.entries(about)) {
    account
      .command(name)
      .description(description)
      .argument('<account>', 'account id')
      .action((id: string) =>
        session.print(session.api().post<Account>(`${accountPath(id)}/${name}`, {}), accountText),
      )
  }
}

function withLimits(command: Command): Command {
  const limited = command
    .option(
      '--requests-per-minute <count>',
      'requests per minute of each key, on plans with limits per account',
      wholeNumber(),
    )
    .option(
      '--account-requests-per-minute <count>',
      'requests per minute of all keys, sessions and tokens of the account together, on the same plans',
      wholeNumber(),
    )
    .option('--retention <duration>', 'maximum lifetime of an inbox, on the same plans')
    .option(
      '--max-messages <count>',
      'maximum number of messages in an inbox, on the same plans',
      wholeNumber(),
    )
  for (const { limit, unit } of QUOTAS.map(kindOf)) {
    const flag = `--${snakeCase(limit).replaceAll('_', '-')} <count>`
    limited.option(flag, `quota of ${unit}, on the same plans`, wholeNumber())
  }
  return limited
}

function limitsJson(limits: Limits): object | undefined {
  if (Object.keys(limits).length === 0) return undefined
  return Object.fromEntries(Object.entries(limits).map(([name, value]) => [snakeCase(name), value]))
}

function accountText({ id, limits, key, ...account }: Account): string {
  const text = facts({ account: id, ...account, ...limits })
  return key ? `${text}\n\n${keyText(key)}` : text
}
