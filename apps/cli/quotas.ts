import { Argument, InvalidArgumentError, type Command } from 'commander'
import { readJson } from '#clients/typescript/src/connection.js'
import type { Schemas } from '#clients/typescript/src/options.js'
import { QUOTAS } from '#libs/domain/account/quota.js'
import { table } from './printing.js'
import type { Session } from './session.js'

type Quota = Schemas['Quota']

interface ScopeFlags {
  environment?: string
  keyId?: string
}

/** `mayfly quota …` */
export function quotaCommands(program: Command, session: Session): void {
  const quota = program.command('quota').description('show and set the quotas of the account')

  quota
    .command('list')
    .description('list the quotas with what is used')
    .action(() => session.print(session.api().get<Quota[]>('/v1/quotas'), quotaTable))

  quota
    .command('set')
    .description('set a quota, within that of the plan; needs the scope admin')
    .addArgument(new Argument('<name>').choices(QUOTAS))
    .argument('<limit>', 'a whole number, or `plan` for the quota of the plan', limitOf)
    .option('--environment <name>', 'only of the inboxes of an environment')
    .option('--key-id <id>', 'only of the inboxes that a key created')
    .action((name: string, limit: number | null, { environment, keyId }: ScopeFlags) => {
      const body = { limit, environment, key_id: keyId }
      const request = { method: 'PUT', path: `/v1/quotas/${name}`, body } as const
      return session.print(session.api().send(request, {}, readJson<Quota>), (set) => quotaTable([set]))
    })
}

function quotaTable(quotas: readonly Quota[]): string {
  return table(
    ['name', 'of', 'used', 'limit', 'resets at'],
    quotas.map(({ name, environment, key_id: key, used, limit, resets_at: resetsAt }) => [
      ...[name, environment ?? key ?? 'the account', used, limit, resetsAt ?? ''],
    ]),
  )
}

function limitOf(text: string): number | null {
  if (text === 'plan') return null
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number, or plan.')
}
