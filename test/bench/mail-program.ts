import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '#infra/servers/ports.js'
import { until } from '#test/harness/until.js'
import { Subject } from './subject.js'

const ENDS_WITHIN_MS = 10_000

/** A mail server under measurement, on free ports and a temporary data folder. */
export interface MailProgram {
  pids: readonly number[]
  smtpPort: number
  dataDir: string
  /** Null if its API needs no key. */
  apiKey: string | null
  createInbox(name: string): Promise<ProgramInbox>
  /** Mails that its API shows. */
  visibleMails(): Promise<number>
  /** Mails that its usage figures have, or those that its API shows if it has none. */
  countedMails(): Promise<number>
  /** Ends it and removes its data folder. */
  dispose(): Promise<void>
}

interface ProgramInbox {
  address: string
  /** Lists the 25 newest messages. */
  listUrl: string
  messageUrl(id: string): string
  sourceUrl(id: string): string
}

/** Resolves once its API answers. */
type StartProgram = (binary: string) => Promise<MailProgram>

export async function startMayfly(profileDir: string | null): Promise<MailProgram> {
  const subject = await Subject.start(profileDir)
  const { url, pids, smtpPort, dataDir, apiKey } = subject.mayfly
  return {
    pids,
    smtpPort,
    dataDir,
    apiKey,
    async createInbox() {
      const { id, address } = await subject.createInbox()
      const messages = `${url}/v1/inboxes/${id}/messages`
      return {
        address,
        listUrl: `${messages}?limit=25`,
        messageUrl: (message) => `${messages}/${message}`,
        sourceUrl: (message) => `${messages}/${message}/raw`,
      }
    },
    visibleMails: () => subject.visibleMessages(),
    countedMails: () => subject.countedMails(),
    dispose: () => subject.dispose(),
  }
}

/** With a database file. It would keep only 500 mails by default, and look for a newer version of itself. */
const startMailpit: StartProgram = (binary) =>
  startBinary(binary, ({ smtp, http, dataDir }) => {
    const api = `http://${http}/api/v1`
    const database = join(dataDir, 'mailpit.db')
    return {
      args: [
        '--database',
        database,
        '--smtp',
        smtp,
        '--listen',
        http,
        '--max',
        '0',
        '--disable-version-check',
      ],
      inboxOf: (name) => ({
        address: `${name}@mailpit.example`,
        listUrl: `${api}/messages?limit=25`,
        messageUrl: (id) => `${api}/message/${id}`,
        sourceUrl: (id) => `${api}/message/${id}/raw`,
      }),
      countUrl: `${api}/info`,
      countField: /"Messages":(\d+)/,
    }
  })

/** In memory, its default. It would keep only 500 mails of an inbox, and its lists have no limit. */
const startInbucket: StartProgram = (binary) =>
  startBinary(binary, ({ smtp, http }) => {
    const api = `http://${http}/api/v1/mailbox`
    return {
      env: {
        INBUCKET_SMTP_ADDR: smtp,
        INBUCKET_WEB_ADDR: http,
        INBUCKET_POP3_ADDR: '127.0.0.1:0',
        INBUCKET_STORAGE_MAILBOXMSGCAP: '0',
      },
      inboxOf: (name) => ({
        address: `${name}@inbucket.example`,
        listUrl: `${api}/${name}`,
        messageUrl: (id) => `${api}/${name}/${id}`,
        sourceUrl: (id) => `${api}/${name}/${id}/source`,
      }),
      countUrl: `http://${http}/debug/vars`,
      countField: /"ReceivedTotal": (\d+)/,
    }
  })

/** Other programs by their names in the command. */
export const OTHER_PROGRAMS: Readonly<Record<string, { title: string; start: StartProgram }>> = {
  mailpit: { title: 'Mailpit', start: startMailpit },
  inbucket: { title: 'Inbucket', start: startInbucket },
}

interface Listening {
  /** Hosts with ports. */
  smtp: string
  http: string
  dataDir: string
}

interface BinarySetup {
  args?: readonly string[]
  env?: Readonly<Record<string, string>>
  inboxOf: (name: string) => ProgramInbox
  /** Answers with JSON that has the number of mails, and what finds it there. */
  countUrl: string
  countField: RegExp
}

async function startBinary(binary: string, setupOf: (at: Listening) => BinarySetup): Promise<MailProgram> {
  const dataDir = await mkdtemp(join(tmpdir(), 'beside-mayfly-'))
  const [smtpPort, httpPort] = [await freePort(), await freePort()]
  const at: Listening = { smtp: `127.0.0.1:${smtpPort}`, http: `127.0.0.1:${httpPort}`, dataDir }
  const { args = [], env, inboxOf, countUrl, countField } = setupOf(at)
  const child = spawn(binary, args, {
    cwd: dataDir,
    env: { PATH: process.env.PATH, ...env },
    stdio: 'ignore',
  })
  await once(child, 'spawn')
  const exited = once(child, 'exit')
  const { pid = NaN } = child
  const countMails = async () => {
    const answer = await (await fetch(countUrl)).text()
    return Number(countField.exec(answer)?.[1] ?? NaN)
  }
  const dispose = async () => {
    child.kill('SIGTERM')
    const killing = setTimeout(() => child.kill('SIGKILL'), ENDS_WITHIN_MS)
    await exited
    clearTimeout(killing)
    await rm(dataDir, { recursive: true, force: true })
  }
  try {
    await until(`${binary} to answer`, async () => {
      if (child.exitCode !== null) throw new Error(`${binary} ended with ${child.exitCode}`)
      return (await countMails().catch(() => NaN)) === 0
    })
  } catch (error) {
    await dispose()
    throw error
  }
  return {
    pids: [pid],
    smtpPort,
    dataDir,
    apiKey: null,
    createInbox: (name) => Promise.resolve(inboxOf(name)),
    visibleMails: countMails,
    countedMails: countMails,
    dispose,
  }
}
