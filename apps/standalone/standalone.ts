import { join, resolve } from 'node:path'
import { startAnalytics } from '#apps/analytics/analytics.js'
import { startApi, type Api } from '#apps/api/api.js'
import { startLifecycle } from '#apps/lifecycle/lifecycle.js'
import { startProjector } from '#apps/projector/projector.js'
import { startSmtp, type SmtpEdge } from '#apps/smtp/smtp-edge.js'
import { startWebhooks } from '#apps/webhooks/webhooks.js'
import type { Engine } from '#libs/engines/engine.js'
import { ensureConfiguredKey, firstAccount, makeFirstKey, type FirstKey } from '#libs/engines/first-key.js'
import { onEngine } from '#libs/role/run-role.js'
import { rereadPlans } from '#libs/runtime/config/plans-file.js'
import { UnavailableError } from '#libs/runtime/errors.js'
import type { ProcessContext } from '#libs/runtime/process/run-process.js'

/*
 * Every role in one process, on either engine. The projector starts first, so that the views know how far they lag
 * behind the log. The roles that accept requests and mail start last and stop first.
 */

export interface StandaloneOptions extends ProcessContext {
  /** Prints the first API key, if one is created. */
  announce: (secret: string) => void
}

export interface Standalone extends Omit<Welcome, 'consoleLink'> {
  /** A link that is new, or was created in the last minute; null if none can be created. */
  consoleLink: () => Promise<string | null>
  /** Stops accepting requests and mail, and resolves once the work in progress is done. */
  close(): Promise<void>
}

/** Resolves once every role runs. If a role can't start, closes those that had started and rejects. */
export function startStandalone({ announce, ...process }: StandaloneOptions): Promise<Standalone> {
  return onEngine('standalone', process, async (context) => {
    const { engine, settings, logger, now, running } = context
    const plans = rereadPlans(settings, logger)
    const projector = await startProjector(context)
    await startLifecycle(context)
    await startWebhooks({ ...context, plans })
    await startAnalytics(context)

    // Before the API listens, because a client may use the configured key at once.
    await ensureConfiguredKey({ engine, settings, now, logger })
    let isStarted = false
    let { smtpPort } = settings
    const api = await startApi({
      ...context,
      plans,
      isStarted: () => isStarted,
      smtpPort: () => smtpPort,
    })
    running.defer(() => api.close())
    const tlsFolder = join(resolve(settings.dataDir), 'tls')
    const smtp = await startSmtp({ ...context, plans, tlsFolder })
    smtpPort = smtp.port
    // Last, so that only a start that succeeds prints a new key.
    const firstKey = await makeFirstKey({ engine, settings, now, logger, announce })
    const consoleLink = reused(LINK_REUSED_MS, () => newConsoleLink(api, engine, logger))
    await consoleLink()
    isStarted = true
    projector.warmUp()
    const { url, port: httpPort } = api
    const { smtpHost, dataDir } = settings
    return { url, httpPort, smtpHost, smtp, firstKey, dataDir: resolve(dataDir), consoleLink }
  })
}

/** A new link replaces the oldest session of the account, if it has many. */
const LINK_REUSED_MS = 60_000

/** Returns the last result of `make` again for this time. */
function reused<Result>(forMs: number, make: () => Promise<Result>): () => Promise<Result> {
  let last: { result: Promise<Result>; madeAtMs: number } | null = null
  return () => {
    const nowMs = performance.now()
    if (last === null || nowMs - last.madeAtMs >= forMs) last = { result: make(), madeAtMs: nowMs }
    return last.result
  }
}

/** A link for the first account; null if none can be created now, which is no reason not to start. */
async function newConsoleLink(
  api: Api,
  { log }: Pick<Engine, 'log'>,
  logger: Pick<ProcessContext['logger'], 'warn'>,
): Promise<string | null> {
  try {
    const accountId = await firstAccount(log)
    return accountId && (await api.createConsoleLink(accountId))
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error
    logger.warn({ err: error }, 'could not create a link to the console: run `mayfly console`')
    return null
  }
}

export interface Welcome {
  url: string
  httpPort: number
  smtpHost: string
  smtp: SmtpEdge
  firstKey: FirstKey
  dataDir: string
  /** Null if there is none. */
  consoleLink: string | null
}

/** The text printed once Mayfly listens: its addresses, and a shell session to paste. */
export function welcomeText({ url, smtpHost, smtp, firstKey, dataDir, consoleLink }: Welcome): string {
  const host = smtpHost.includes(':') ? `[${smtpHost}]` : smtpHost
  return `
Mayfly is listening.

  HTTP API   ${url}
  SMTP       ${host}:${smtp.port}
${smtp.tlsPort === null ? '' : `  SMTPS      ${host}:${smtp.tlsPort}\n`}${
    smtp.caFile === null ? '' : `  CA file    ${smtp.caFile}  (make the SMTP client trust it)\n`
  }${smtp.caughtDomains === null ? '' : catcherNotice(smtp.caughtDomains)}${consoleNotice(consoleLink)}${keyNotice(firstKey, dataDir)}
Try it: create an inbox, send it a mail, wait for the mail.

  export MAYFLY_KEY=${keyForSession(firstKey)}
  inbox=$(curl -sSf -X POST ${url}/v1/inboxes -H "Authorization: Bearer $MAYFLY_KEY")
  id=$(printf %s "$inbox" | sed -E 's/.*"id":"([^"]+)".*/\\1/')
  address=$(printf %s "$inbox" | sed -E 's/.*"address":"([^"]+)".*/\\1/')
  printf 'From: App <app@example.com>\\r\\nTo: %s\\r\\nSubject: Your code is 493201\\r\\n\\r\\nYour code is 493201.\\r\\n' "$address" |
    curl -sS smtp://${host}:${smtp.port} --mail-from app@example.com --mail-rcpt "$address" -T -
  curl -sSf ${url}/v1/inboxes/$id/messages/wait -H "Authorization: Bearer $MAYFLY_KEY"

`
}

function catcherNotice(domains: string): string {
  return `
  Mail to an address of ${domains} makes an inbox: point your application's SMTP settings here.
`
}

function consoleNotice(link: string | null): string {
  return link === null ? '' : `\n  Web console, with this link once, within 10 minutes:\n\n    ${link}\n`
}

function keyNotice(firstKey: FirstKey, dataDir: string): string {
  if (firstKey === 'configured') return ''
  return firstKey === 'created-earlier'
    ? `\n  Lost the API key? Stop Mayfly and run: npx mayfly key recover --data-dir '${dataDir.replaceAll("'", "'\\''")}'\n`
    : `\n  Your first API key, shown only now:\n\n    ${firstKey.secret}\n`
}

function keyForSession(firstKey: FirstKey): string {
  if (firstKey === 'configured') return '"$MAYFLY_BOOTSTRAP_API_KEY"'
  return firstKey === 'created-earlier'
    ? "'<the API key that the first start printed>'"
    : `'${firstKey.secret}'`
}
