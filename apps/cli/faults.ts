import { InvalidArgumentError, type Command } from 'commander'
import { readJson } from '#clients/typescript/src/connection.js'
import type { Session } from './session.js'

type FaultJson = Readonly<Record<string, unknown>>

/** `mayfly faults …` */
export function faultsCommands(program: Command, session: Session): void {
  const faults = program
    .command('faults')
    .description('reject, delay, lose or duplicate mail on purpose, to test how its sender handles that')
  const print = async (method: 'GET' | 'PUT' | 'DELETE', whose: string, body?: readonly FaultJson[]) => {
    const isInbox = whose.startsWith('inb_') || whose.includes('@')
    const owner = isInbox ? await session.inboxPath(whose) : `/v1/environments/${encodeURIComponent(whose)}`
    const request = { method, path: `${owner}/faults`, ...(body && { body }) }
    const shown = session.api().send(request, {}, readJson<FaultJson[]>)
    return session.print(shown, (all) =>
      all.length === 0 ? 'no faults' : all.map((fault) => JSON.stringify(fault)).join('\n'),
    )
  }
  ofWhom(faults.command('show'))
    .description('print the faults, in the order in which they are checked')
    .action((whose: string) => print('GET', whose))
  ofWhom(faults.command('set'))
    .description('replace the faults')
    .argument('<fault...>', 'JSON, such as {"stage":"after_accept","action":"drop","every_n":2}', readFault)
    .action((whose: string, body: readonly FaultJson[]) => print('PUT', whose, body))
  ofWhom(faults.command('remove'))
    .description('remove the faults')
    .action((whose: string) => print('DELETE', whose))
}

function ofWhom(command: Command): Command {
  return command.argument(
    '<inbox-or-environment>',
    'inbox id or address, or an environment for all inboxes that are created in it from now on (needs the scope admin)',
  )
}

function readFault(text: string, before: readonly FaultJson[] = []): readonly FaultJson[] {
  try {
    return [...before, JSON.parse(text) as FaultJson]
  } catch {
    throw new InvalidArgumentError('It must be JSON.')
  }
}
