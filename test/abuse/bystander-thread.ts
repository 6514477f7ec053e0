import { once } from 'node:events'
import { parentPort, workerData } from 'node:worker_threads'
import type { Target } from '#test/harness/client.js'
import { timesOf } from './bystander.js'

/* Takes the times of the account in `workerData` until it is sent a message, and answers with them. */

if (parentPort === null) throw new Error('this is the code of a thread')
parentPort.postMessage(await timesOf(workerData as Target, once(parentPort, 'message')))
