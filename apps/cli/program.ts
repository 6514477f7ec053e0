import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Command, Option } from 'commander'
import type { Setting } from '#libs/runtime/config/setting.js'
import { SETTINGS } from '#libs/runtime/config/settings-table.js'
import { BUILD_INFO } from '#libs/runtime/process/build-info.js'
import { accountCommands } from './accounts.js'
import { ApiClient, type Session } from './api-client.js'
import { consoleCommand } from './console.js'
import { EXIT, Failure } from './failure.js'
import { inboxCommands } from './inboxes.js'
import { keyCommands } from './keys.js'
import { loadCommands } from './load/load.js'
import { mcpCommand } from './mcp.js'
import { usageCommands } from './usage.js'

interface GlobalOptions {
  url: string
  key?: string
  json?: boolean
}

const EXIT_CODES = `
Exit codes: 0 success, 1 any other failure, 2 invalid command or request, 3 not found, ended, or nothing matched
in time, 4 the key, its scopes or the password were refused, 5 Mayfly is unreachable, busy or over a limit, 6 the mail
of a load run differs from its manifest, 130 a load test was interrupted.`

/** Makes the command line. The results of commands are written to `output`. */
export function makeProgram(output: Writable & { isTTY?: boolean }): Command {
  const program = new Command('mayfly')
    .description('A client of the Mayfly API: disposable inboxes, keys, accounts and usage.')
    .addOption(new Option('--url <url>', 'URL of the API').env('MAYFLY_URL').default('http://127.0.0.1:3000'))
    .addOption(
      new Option('--key <key>', 'the API key; other users of the machine may see it here').env('MAYFLY_KEY'),
    )
    .option('--json', 'print the JSON of the API, also for problems')
    .showHelpAfterError('(use --help for details)')
    .addHelpText('after', EXIT_CODES)
    .version(BUILD_INFO.commit === null ? BUILD_INFO.version : `${BUILD_INFO.version} (${BUILD_INFO.commit})`)
    .exitOverride()
  const write: Session['write'] = (content) => void output.write(content)
  const options = () => program.opts<GlobalOptions>()
  const access = () => {
    const { url, key } = options()
    if (key === undefined || key === '') throw new Failure(EXIT.usage, 'no API key: set MAYFLY_KEY')
    return { url, key }
  }
  const session: Session = {
    api() {
      const { url, key } = access()
      return new ApiClient(url, key)
    },
    async print(result, toText) {
      const settled = await result
      write(`${options().json === true ? JSON.stringify(settled) : toText(settled)}\n`)
    },
    write,
    writeAll: (content) => pipeline(content, output, { end: false }),
    isTerminal: output.isTTY === true,
  }
  accountCommands(program, session)
  keyCommands(program, session)
  inboxCommands(program, session)
  usageCommands(program, session)
  loadCommands(program, session, access)
  consoleCommand(program, session)
  mcpCommand(program, session, access)
  configCommand(program, session)
  return program
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
