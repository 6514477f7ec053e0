import type { Command } from 'commander'
import type { Session } from './api-client.js'

interface LinkJson {
  url: string
  expires_at: string
}

/** `mayfly console` */
export function consoleCommand(program: Command, session: Session): void {
  program
    .command('console')
    .description(
      'print a link to the web console, which signs in once within 10 minutes; needs the scope admin',
    )
    .action(() => session.print(session.api().call<LinkJson>('POST', '/console/links'), ({ url }) => url))
}
