import type { Command } from 'commander'
import { SETTINGS } from '#libs/runtime/config/settings.js'
import type { Setting } from '#libs/runtime/config/setting.js'
import type { Session } from './session.js'

/** `mayfly config`: all settings, from the code that reads them. It needs no server. */
export function configCommand(program: Command, session: Session): void {
  program
    .command('config')
    .description('print every setting of the server with its default and its meaning')
    .action(() => {
      const settings = Object.values<Setting<unknown>>(SETTINGS).map(({ variable, defaultText, help }) => ({
        variable,
        default: defaultText,
        help,
      }))
      session.print(settings, () =>
        settings.map((each) => `${each.variable}=${each.default ?? ''}\n    ${each.help}`).join('\n'),
      )
    })
}
