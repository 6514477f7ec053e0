import { once } from 'node:events'
import { parentPort, workerData } from 'node:worker_threads'
import type { Target } from '#test/harness/client.js'
import { timesOf } from './bystander.js'

/* Measures the account in `workerData` until it gets a message, and replies with the times. */

if (parentPort === null) throw new Error('this file must run in a worker thread')
parentPort.postMessage(await timesOf(workerData as Target, once(parentPort, 'message')))
