import type { Command } from 'commander'
import type { Schemas } from '#clients/typescript/src/options.js'
import { CheckpointError } from '#libs/domain/audit/checkpoint.js'
import { wholeNumber } from '../arguments.js'
import { EXIT, Failure, requireOwnNode } from '../failure.js'
import { writeFileAtomically } from '../files.js'
import { facts, oneLine } from '../printing.js'
import type { Session } from '../session.js'
import { exportLog } from './export-log.js'
import type { Replay } from './replay-export.js'
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
    .requiredOption('--public-key <key...>', 'public keys of the log, from a source that you trust')
    .option('--checkpoint <file...>', 'checkpoints of the log that you kept elsewhere', [])
    .action(async (folder: string, { publicKey, checkpoint }: VerifyFlags) => {
      const options = { publicKeys: publicKey, keptCheckpoints: checkpoint }
      const verification = await verifyExport(folder, options).catch((error: unknown) => {
        throw error instanceof CheckpointError ? new Failure(EXIT.usage, error.message) : error
      })
      await session.print(verification, verificationText)
      const { problem_count: count } = verification
      if (count > 0) throw new Failure(EXIT.differs, `the export is not verified: ${count} problems`)
    })

  audit
    .command('replay')
    .description('compute the state of the account from an export, without a network')
    .argument('<folder>', 'the folder of the export, which you have verified')
    .option('--size <leaves>', 'only from the first leaves, as in Mayfly-As-Of', wholeNumber(0))
    .option('--to <file>', 'write the state, a line of JSON for each thing')
    .action((folder: string, flags: ReplayFlags) =>
      session.print(replay(folder, flags), (done) => facts({ ...done })),
    )

  audit
    .command('erasure')
    .description('show the certificate of erasure of an inbox, whole with --json; needs the scope audit')
    .argument('<inbox>', 'id of the inbox')
    .action((inbox: string) => {
      const path = `/v1/inboxes/${encodeURIComponent(inbox)}/erasure`
      return session.print(session.api().get<Schemas['Erasure']>(path), erasureText)
    })
}

interface ReplayFlags {
  size?: number | null
  to?: string
}

/** Writes the lines of the state to a file, or only computes their digest. */
async function replay(folder: string, { size = null, to }: ReplayFlags): Promise<Replay> {
  requireOwnNode('audit replay')
  const { replayExport } = await import('./replay-export.js')
  const done = Promise.withResolvers<Replay>()
  async function* lines() {
    done.resolve(yield* replayExport(folder, size))
  }
  if (to === undefined) for await (const _line of lines()) continue
  else await writeFileAtomically(to, () => Promise.resolve(lines()))
  return done.promise
}

interface VerifyFlags {
  publicKey: readonly string[]
  checkpoint: readonly string[]
}

const MAX_PROBLEM_CHARS = 300

/** Names in problems come from the export, which may be hostile. */
function verificationText({ problems, problem_count: count, ...summary }: Verification): string {
  const more = count > problems.length ? [`and ${count - problems.length} more`] : []
  return [facts(summary), ...problems.map((each) => oneLine(each).slice(0, MAX_PROBLEM_CHARS)), ...more].join(
    '\n',
  )
}

function erasureText(certificate: Schemas['Erasure']): string {
  const { leaf: _leaf, record: _record, proof: _proof, does_not_prove: limits, ...shown } = certificate
  return [facts(shown), 'It does not prove this:', ...limits.map((limit) => `- ${limit}`)].join('\n')
}
