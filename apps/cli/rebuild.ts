import { Option, type Command } from 'commander'
import { EXIT, Failure, requireOwnNode } from './failure.js'
import { facts, oneLine } from './printing.js'
import type { Session } from './session.js'
import type { Verified } from './verify-views.js'

/** `mayfly rebuild --verify` */
export function rebuildCommand(program: Command, session: Session): void {
  program
    .command('rebuild')
    .description(
      'compare the views with a rebuild from the event log: of a running system with the settings of its roles, or of the embedded engine while Mayfly is stopped',
    )
    .requiredOption('--verify', 'compare only; the views are rebuilt by deleting them')
    .addOption(new Option('--data-dir <folder>', 'the data folder').env('MAYFLY_DATA_DIR').default('./data'))
    .action(async ({ dataDir }: { dataDir: string }) => {
      requireOwnNode('rebuild --verify')
      const { verifyViews } = await import('./verify-views.js')
      const warn = (text: string) => void process.stderr.write(`${oneLine(text)}\n`)
      const verified = await verifyViews({ ...process.env, MAYFLY_DATA_DIR: dataDir }, warn)
      await session.print(verified, verifiedText)
      const { difference_count: count, unstable } = verified
      if (count > 0) {
        throw new Failure(EXIT.differs, `the views differ from the event log: ${count} differences`)
      }
      if (unstable > 0) {
        const what = `${unstable} rows changed each time they were compared`
        throw new Failure(EXIT.unavailable, `${what}: compare again with less traffic`)
      }
    })
}

function verifiedText({ differences, difference_count: count, ...summary }: Verified): string {
  const lines = differences.map(({ account_id, id, difference }) =>
    oneLine(`${account_id}, ${id}: ${difference}`),
  )
  const more = count > differences.length ? [`and ${count - differences.length} more`] : []
  return [facts(summary), ...lines, ...more].join('\n')
}
