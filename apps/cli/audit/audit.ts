import type { Command } from 'commander'
import type { Schemas } from '#clients/typescript/src/options.js'
import { messageOf } from '#libs/runtime/errors.js'
import { EXIT, Failure } from '../failure.js'
import { facts } from '../printing.js'
import type { Session } from '../session.js'
import { exportLog } from './export-log.js'
import { verifyExport, type Verification } from './verify-export.js'

/** `mayfly audit …` */
export function auditCommands(program: Command, session: Session): void {
  const audit = program.command('audit').description('export and verify the audit log of the account')

  audit
    .command('log')
    .description('show the audit log with its public key; needs the scope audit')
    .action(() => {
      const logs = session.api().get<Schemas['AuditLog'][]>('/v1/audit/logs')
      return session.print(logs, (found) => found.map((log) => facts({ ...log })).join('\n\n'))
    })

  audit
    .command('export')
    .description('download the audit log, or what is new since the last export; needs the scope audit')
    .requiredOption('--to <folder>', 'the folder of the export')
    .action(({ to }: { to: string }) =>
      session.print(exportLog(session.api(), to), (done) => facts({ ...done })),
    )

  audit
    .command('verify')
    .description('verify an export, without a network')
    .argument('<folder>', 'the folder of the export')
    .requiredOption(
      '--public-key <key...>',
      'the public key of the log, from a source that you trust; or several',
    )
    .action(async (folder: string, { publicKey }: { publicKey: readonly string[] }) => {
      const verification = await verifyExport(folder, publicKey).catch((error: unknown) => {
        throw new Failure(EXIT.failed, `${folder} can't be read: ${messageOf(error)}`)
      })
      await session.print(verification, verificationText)
      const { problem_count: count } = verification
      if (count > 0) throw new Failure(EXIT.differs, `the export does not verify: ${count} problems`)
    })

  audit
    .command('erasure')
    .description('print the certificate of erasure of an inbox that has ended; needs the scope audit')
    .argument('<inbox>', 'id of the inbox')
    .action((inbox: string) => {
      const path = `/v1/inboxes/${encodeURIComponent(inbox)}/erasure`
      return session.print(session.api().get<Schemas['Erasure']>(path), ({ limits, ...certificate }) =>
        [facts({ ...certificate }), 'It does not prove:', ...limits.map((limit) => `- ${limit}`)].join('\n'),
      )
    })
}

function verificationText({ problems, problem_count: count, ...summary }: Verification): string {
  const more = count > problems.length ? [`and ${count - problems.length} more`] : []
  return [facts(summary), ...problems, ...more].join('\n')
}
