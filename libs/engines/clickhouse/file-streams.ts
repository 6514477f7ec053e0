import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, mkdirSync, rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClickHouseClient } from '@clickhouse/client'
import { EXPORT_SETTINGS, type ExportedFile } from './export-query.js'

/** Gives a file's bytes as they are made; a server and chDB have ways of their own to it. */
export type StreamFile = (file: ExportedFile, signal: AbortSignal) => Promise<AsyncIterable<Uint8Array>>

/** A server gives the file while it makes it. */
export function fromServer(client: ClickHouseClient): StreamFile {
  return async ({ rows, format }, signal) => {
    const { stream } = await client.exec({
      query: `${rows.query} ${EXPORT_SETTINGS} FORMAT ${format}`,
      query_params: rows.query_params,
      abort_signal: signal,
    })
    return stream
  }
}

/** chDB would hold the whole answer in memory: it writes it to a file, which goes once it has been read. */
export function fromChdb(client: ClickHouseClient, folder: string): StreamFile {
  // What a process that was killed has left.
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  return async ({ rows, format }, signal) => {
    const path = join(folder, randomUUID())
    try {
      await client.command({
        query: `INSERT INTO FUNCTION file({path:String}, '${format}') ${rows.query} ${EXPORT_SETTINGS}`,
        query_params: { ...rows.query_params, path },
      })
      signal.throwIfAborted()
    } catch (error) {
      await rm(path, { force: true })
      throw error
    }
    const file = createReadStream(path)
    signal.addEventListener('abort', () => file.destroy(), { once: true })
    // A file that is open can be read after it has gone from its folder.
    await once(file, 'open')
    await rm(path, { force: true })
    return file
  }
}
