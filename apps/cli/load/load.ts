import type { Command } from 'commander'
import type { Session } from '../api-client.js'
import { loadHttpCommand } from './load-http.js'
import { loadSmtpCommand } from './load-smtp.js'
import { loadVerifyCommand } from './verify.js'

/** `mayfly load …` */
export function loadCommands(
  program: Command,
  session: Session,
  access: () => { url: string; key: string },
): void {
  const load = program
    .command('load')
    .description('run load tests: send mail or requests at a fixed rate, and verify what arrived')
  loadSmtpCommand(load, session, access)
  loadHttpCommand(load, session, access)
  loadVerifyCommand(load, session)
}
