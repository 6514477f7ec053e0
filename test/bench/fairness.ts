import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { accountOn } from '#test/harness/accounts.js'
import { createInbox, type Target } from '#test/harness/client.js'
import { quantile, type Figure } from './figure.js'
import { findPostfix, withSink } from './postfix.js'
import type { Section } from './section.js'
import { SmtpClient } from './smtp-client.js'
import { Subject } from './subject.js'
import { verificationMail } from './verification-mail.js'
import { findWrk } from './wrk.js'

const WARM_UP = 30
const STEPS = 300
const EVERY_MS = 50
const CONNECTIONS = '20'
/** Longer than the measurement, which ends them. */
const MAILS = '10000000'
const DURATION = '3600s'

/** In milliseconds. */
interface Times {
  create: number[]
  accept: number[]
  wait: number[]
}

/** How long an account's requests and mails take while another one sends mail, and then requests, at full rate. */
export const fairness: Section = async ({ profileDir, say }) => {
  const [postfix, wrk] = [findPostfix(), findWrk()]
  if (postfix === null || wrk === null) {
    say('skipped: it needs smtp-source and wrk: apt-get install postfix wrk')
    return []
  }
  const subject = await Subject.start(profileDir)
  try {
    const [quiet, loud] = [await accountOn(subject.mayfly), await accountOn(subject.mayfly)]
    const { address } = await createInbox(loud)
    const names = ['-M', 'bench.example', '-f', 'sender@app.example', '-t', address]
    const mailTo = (port: number) => [
      ...['-d', '-s', CONNECTIONS, '-l', '5120', '-m', MAILS, ...names, `127.0.0.1:${port}`],
    ]
    const load = ['--threads', '1', '--connections', CONNECTIONS, '--duration', DURATION]
    const headers = ['--header', `Authorization: Bearer ${loud.apiKey}`]
    const creates = [...load, ...headers, '--script', 'test/bench/create-inbox.lua', `${loud.url}/v1/inboxes`]
    const idle = await timesOf(quiet)
    // What of it is only the use of the same cores.
    const besideSink = await withSink(postfix, (port) =>
      beside(postfix.source, mailTo(port), () => timesOf(quiet)),
    )
    const besideMail = await beside(postfix.source, mailTo(loud.smtpPort), () => timesOf(quiet))
    const besideCreates = await beside(wrk.path, creates, () => timesOf(quiet))
    return [
      ...figures('beside mail to smtp-sink', besideSink, idle),
      ...figures('beside mail of another account', besideMail, idle, 3),
      ...figures('beside creations of another account', besideCreates, idle, 3),
    ]
  } finally {
    await subject.dispose()
  }
}

/** One inbox after another: its creation, a mail from its first byte to its 250, and from there to the end of a wait for it. */
async function timesOf(target: Target): Promise<Times> {
  const client = await SmtpClient.open(target.smtpPort)
  const times: Times = { create: [], accept: [], wait: [] }
  const headers = { authorization: `Bearer ${target.apiKey}` }
  for (let number = -WARM_UP; number < STEPS; number += 1) {
    const startedMs = performance.now()
    const { id, address } = await createInbox(target)
    const createdMs = performance.now()
    const waiting = fetch(`${target.url}/v1/inboxes/${id}/messages/wait?timeout=55`, { headers })
    await pause(EVERY_MS)
    const sentMs = performance.now()
    await client.send(address, verificationMail(number + WARM_UP, address))
    const acceptedMs = performance.now()
    const answer = await waiting
    await answer.text()
    const wokenMs = performance.now()
    if (!answer.ok) throw new Error(`a wait was answered ${answer.status}`)
    if (number < 0) continue
    times.create.push(createdMs - startedMs)
    times.accept.push(acceptedMs - sentMs)
    times.wait.push(wokenMs - acceptedMs)
  }
  client.close()
  return times
}

/** Runs a program that would not end during some work. */
async function beside<Result>(
  program: string,
  args: readonly string[],
  work: () => Promise<Result>,
): Promise<Result> {
  const child = spawn(program, args, { stdio: 'ignore' })
  const exited = once(child, 'exit')
  try {
    const result = await work()
    if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}`)
    return result
  } finally {
    child.kill('SIGKILL')
    await exited
  }
}

function figures(where: string, times: Times, idle: Times, atMost?: number): Figure[] {
  return (['create', 'accept', 'wait'] as const).map((step) => ({
    name: `${step} ${where}, p99`,
    unit: 'ms',
    rounds: [quantile(times[step], 0.99)],
    baseline: { name: 'idle', rounds: [quantile(idle[step], 0.99)] },
    ...(atMost === undefined ? {} : { target: { atMost } }),
  }))
}
