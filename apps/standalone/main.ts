import 'reflect-metadata'
import { listeningFacts } from '#apps/smtp/smtp-edge.js'
import { withinOpenFiles } from '#libs/runtime/process/open-files.js'
import { runProcess } from '#libs/runtime/process/run-process.js'
import { startStandalone, welcomeText } from './standalone.js'

await runProcess(async (context) => {
  const mayfly = await startStandalone({
    ...context,
    settings: withinOpenFiles(context.settings, context.logger),
    announce: (secret) => process.stdout.write(`mayfly: created the first API key: ${secret}\n`),
  })
  const { url, httpPort, smtp } = mayfly
  return {
    listening: { url, httpPort, ...listeningFacts(smtp) },
    welcome: async () => welcomeText({ ...mayfly, consoleLink: await mayfly.consoleLink() }),
    close: () => mayfly.close(),
  }
})
