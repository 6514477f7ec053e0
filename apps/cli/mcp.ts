import { once } from 'node:events'
import type { Command } from 'commander'
import { messageOf } from '#libs/runtime/errors.js'
import { BUILD_INFO } from '#libs/runtime/process/build-info.js'
import type { Session } from './api-client.js'
import { harmless } from './printing.js'

/** `mayfly mcp`: serves the Model Context Protocol on standard input and output, until the input ends. */
export function mcpCommand(
  program: Command,
  session: Session,
  access: () => { url: string; key: string },
): void {
  program
    .command('mcp')
    .description('serve inboxes to an MCP client, such as a coding agent, on standard input and output')
    .action(async () => {
      // Fails if the URL or the key is not valid.
      session.api()
      const { url, key: apiKey } = access()
      // Loaded here, since no other command needs them.
      const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js')
      const { makeMcpServer } = await import('#clients/mcp/src/server.js')
      const onError = (error: unknown) => void process.stderr.write(`mayfly: ${harmless(messageOf(error))}\n`)
      const server = makeMcpServer({ url, apiKey, onError }, BUILD_INFO.version)
      const ended = once(process.stdin, 'end')
      await server.connect(new StdioServerTransport())
      await ended
      // Aborts tools that still run.
      await server.close()
    })
}
