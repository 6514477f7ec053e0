import { Option, type Command } from 'commander'
import type { Schemas } from '#clients/typescript/src/options.js'
import { label, pairsOf, wholeNumber } from './arguments.js'
import { facts, table } from './printing.js'
import type { Session } from './session.js'

type Domain = Schemas['Domain']

interface ChangeOptions {
  subdomains?: boolean
  create?: boolean
  reject?: boolean
  deliver?: string
  duration?: string
  label?: readonly string[]
}

/** `mayfly domain …` */
export function domainCommands(program: Command, session: Session): void {
  const domain = program
    .command('domain')
    .description('manage the domains whose mail the account receives; needs the scope admin')

  withChanges(domain.command('create'))
    .description('register a domain and print its DNS records, or without a name a hosted domain')
    .argument('[name]', 'your domain, such as staging.example.com')
    .option('--environment <environment>', "environment whose inboxes receive the mail; default: the key's")
    .action(
      (name: string | undefined, { environment, ...options }: ChangeOptions & { environment?: string }) => {
        const body = {
          ...(name === undefined ? { hosted: true } : { name }),
          environment,
          ...changesOf(options),
        }
        return session.print(session.api().post<Domain>('/v1/domains', body), domainText)
      },
    )

  withChanges(domain.command('update'))
    .description(
      'change whether a domain has subdomains, or what becomes of mail to an address without an inbox',
    )
    .argument('<domain>', 'domain id')
    .option('--no-subdomains', 'leave all subdomains out')
    .action((id: string, options: ChangeOptions) =>
      session.print(session.api().post<Domain>(domainPath(id), changesOf(options), 'PATCH'), domainText),
    )

  domain
    .command('list')
    .description('list the domains, newest first')
    .option('--limit <count>', 'maximum number of domains', wholeNumber(), 1_000)
    .action((options: { limit: number }) =>
      session.print(session.api().list<Domain>('/v1/domains', options), (domains) =>
        table(
          ['id', 'name', 'environment', 'state', 'catch all'],
          domains.map((each) => [each.id, each.name, each.environment, each.state, each.catch_all.action]),
        ),
      ),
    )

  domain
    .command('show')
    .description('show a domain with its DNS records')
    .argument('<domain>', 'domain id')
    .option('--zone-file', 'print the records only, in the format of a zone file')
    .action(async (id: string, { zoneFile }: { zoneFile?: boolean }) => {
      const api = session.api()
      if (zoneFile === true) session.write(await api.bytes(`${domainPath(id)}/zonefile`))
      else await session.print(api.get<Domain>(domainPath(id)), domainText)
    })

  domain
    .command('verify')
    .description('check the DNS records of a domain now')
    .argument('<domain>', 'domain id')
    .action((id: string) => session.print(session.api().post<Domain>(`${domainPath(id)}/verify`), domainText))

  domain
    .command('delete')
    .description('stop receiving the mail of a domain; its inboxes stay')
    .argument('<domain>', 'domain id')
    .action((id: string) => session.print(session.api().delete<Domain>(domainPath(id)), domainText))
}

function withChanges(command: Command): Command {
  return command
    .option('--subdomains', 'include all subdomains')
    .option('--create', 'make an inbox for mail to an address without one; default of a hosted domain')
    .option('--duration <duration>', 'lifetime of these inboxes, such as 30m, 24h or 7d')
    .option('--label <name:value>', 'label of these inboxes; can be repeated', label)
    .addOption(
      new Option('--deliver <inbox>', 'deliver such mail to this inbox, by its id').conflicts(CREATING),
    )
    .addOption(new Option('--reject', 'refuse such mail').conflicts([...CREATING, 'deliver']))
}

/** Options that imply `--create`. */
const CREATING = ['create', 'duration', 'label']

/** The body of a request. */
function changesOf({ subdomains, create, reject, deliver, duration, label: labels }: ChangeOptions): object {
  if (deliver !== undefined) return { subdomains, catchAll: { action: 'deliver', inbox_id: deliver } }
  if (reject === true) return { subdomains, catchAll: { action: 'reject' } }
  if ([create, duration, labels].every((option) => option === undefined)) return { subdomains }
  return { subdomains, catchAll: { action: 'create', duration, labels: labels && pairsOf(labels) } }
}

const OTHER_MX =
  'Other hosts receive mail of this domain too: some mail may go there. Use a subdomain that receives no other mail.'

function domainPath(id: string): string {
  return `/v1/domains/${encodeURIComponent(id)}`
}

function domainText({ id, records, catch_all, ...domain }: Domain): string {
  const text = facts({ 'domain id': id, ...domain, 'catch all': JSON.stringify(catch_all) })
  if (records.length === 0) return text
  const rows = records.map((each) => [
    ...[each.type, each.name, each.zone_name, each.priority, each.value, each.status],
    each.found.join(', '),
  ])
  const columns = ['type', 'name', 'name in zone', 'priority', 'value', 'status', 'found']
  const isShared = records.some(
    ({ type, value, status, found }) =>
      type === 'MX' && status === 'valid' && found.some((each) => !each.endsWith(` ${value}`)),
  )
  return `${text}\n\n${table(columns, rows)}${isShared ? `\n\n${OTHER_MX}` : ''}`
}
