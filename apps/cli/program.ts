import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { Command, Option } from 'commander'
import type { Setting } from '#libs/runtime/config/setting.js'
import { SETTINGS } from '#libs/runtime/config/settings-table.js'
import { BUILD_INFO } from '#libs/runtime/process/build-info.js'
import { accountCommands, activityCommand } from './accounts.js'
import { auditCommands } from './audit/audit.js'
import { rebuildCommand } from './rebuild.js'
import { domainCommands } from './domains.js'
import { failureFrom } from './failure.js'
import { faultsCommands } from './faults.js'
import { inboxCommands } from './inboxes.js'
import { keyCommands } from './keys.js'
import { loadSmtpCommand } from './load/load-smtp.js'
import { loadVerifyCommand } from './load/verify.js'
import { memberCommands } from './members.js'
import { harmless } from './printing.js'
import { quotaCommands } from './quotas.js'
import { Session, type GlobalOptions } from './session.js'
import { usageCommands } from './usage.js'

const EXIT_CODES = `
Exit codes: 0 success, 1 any other failure, 2 invalid command or request, 3 not found, ended, or nothing matched
in time, 4 the key, its scopes or the password were refused, 5 Mayfly is unreachable, busy or over a limit, 6 the mail
of a load run differs from its manifest or an audit log from what was signed, 130 a load test was interrupted.`

/** Makes the command line. The results of commands are written to `output`. */
export function makeProgram(output: Writable & { isTTY?: boolean }): Command {
  const program = new Command('mayfly')
    .description('A client of the Mayfly API: disposable inboxes, keys, domains, accounts and usage.')
    .addOption(new Option('--url <url>', 'URL of the API').env('MAYFLY_URL').default('http://127.0.0.1:3000'))
    .addOption(
      new Option('--key <key>', 'the API key; other users of the machine may see it here').env('MAYFLY_KEY'),
    )
    .option('--json', 'print the JSON of the API, also for problems')
    .showHelpAfterError('(use --help for details)')
    .addHelpText('after', EXIT_CODES)
    .version(BUILD_INFO.commit === null ? BUILD_INFO.version : `${BUILD_INFO.version} (${BUILD_INFO.commit})`)
    .exitOverride()
  const session = new Session(() => program.opts<GlobalOptions>(), output)
  accountCommands(program, session)
  activityCommand(program, session)
  auditCommands(program, session)
  rebuildCommand(program, session)
  quotaCommands(program, session)
  keyCommands(program, session)
  memberCommands(program, session)
  domainCommands(program, session)
  inboxCommands(program, session)
  faultsCommands(program, session)
  usageCommands(program, session)
  loadCommands(program, session)
  consoleCommand(program, session)
  mcpCommand(program, session)
  configCommand(program, session)
  return program
}

/** `mayfly load …` */
function loadCommands(program: Command, session: Session): void {
  const load = program
    .command('load')
    .description('run load tests: send mail at a fixed rate, and verify what arrived')
  loadSmtpCommand(load, session)
  loadVerifyCommand(load, session)
}

/** `mayfly console` */
function consoleCommand(program: Command, session: Session): void {
  program
    .command('console')
    .description(
      'print a link to the web console, which signs in once within 10 minutes; needs the scope admin',
    )
    .option('--member <member>', 'id of the member who is to use it; for an owner')
    .action(({ member }: { member?: string }) => {
      const link = session.api().post<{ url: string }>('/console/links', { member_id: member })
      return session.print(link, ({ url }) => url)
    })
}

/** Within it, `mayfly mcp` says that the server does not answer. */
const CHECK_TIMEOUT_MS = 10_000

/** `mayfly mcp`: serves the Model Context Protocol on standard input and output, until the input ends. */
function mcpCommand(program: Command, session: Session): void {
  program
    .command('mcp')
    .description('serve inboxes to an MCP client, such as a coding agent, on standard input and output')
    .action(async () => {
      const server = session.server()
      const onError = (error: unknown) =>
        void process.stderr.write(`mayfly: ${harmless(failureFrom(error).message)}\n`)
      // Clients show a tool's errors to a model only. The tools work as soon as the server answers.
      const check = session.api().get('/v1/inboxes', { limit: 1, timeoutMs: CHECK_TIMEOUT_MS })
      void check.catch((error: unknown) => {
        onError(error)
        process.stderr.write('mayfly: no tool works until this is fixed\n')
      })
      // Loaded here, since no other command needs them.
      const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js')
      const { makeMcpServer } = await import('#clients/mcp/src/server.js')
      const mcp = makeMcpServer({ ...server, onError }, BUILD_INFO.version)
      const ended = once(process.stdin, 'end')
      await mcp.connect(new StdioServerTransport())
      await ended
      // Aborts tools that still run.
      await mcp.close()
    })
}

/** `mayfly config`: all settings of the server. It requires no server. */
function configCommand(program: Command, session: Session): void {
  program
    .command('config')
    .description('print every setting of the server with its default and its meaning')
    .action(() => {
      const settings = Object.values<Setting<unknown>>(SETTINGS)
      const listed = settings.map(({ variable, defaultText, help }) => ({
        variable,
        default: defaultText,
        help,
      }))
      return session.print(listed, (shown) =>
        shown
          .map((setting) => `${setting.variable}=${setting.default ?? ''}\n    ${setting.help}`)
          .join('\n'),
      )
    })
}
