import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '#test/harness/until.js'

/** The markers that occur in any file of the folders, in any encoding of a mail. */
export async function leaks(markers: object, ...folders: readonly string[]): Promise<string[]> {
  const found: string[] = []
  for (const { file, bytes } of (await Promise.all(folders.map(contentsOf))).flat()) {
    for (const [what, marker] of Object.entries<string>({ ...markers })) {
      if (formsOf(marker).some((form) => bytes.includes(form))) found.push(`${what} in ${file}`)
    }
  }
  return found
}

/** UTF-8, UTF-16, quoted-printable with every byte encoded, and base64 at each of its three alignments. */
function formsOf(marker: string): Buffer[] {
  const bytes = Buffer.from(marker)
  const quoted = [...bytes].map((byte) => `=${byte.toString(16).toUpperCase()}`).join('')
  const base64 = [0, 1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
    return text.slice(shift === 0 ? 0 : 4, -4)
  })
  return [
    bytes,
    Buffer.from(marker, 'utf16le'),
    ...[quoted, quoted.toLowerCase(), ...base64].map((text) => Buffer.from(text)),
  ]
}

interface Content {
  file: string
  bytes: Buffer
}

/** The content of all files at about the same time. Retries if a server renames or removes files meanwhile. */
export function contentsOf(folder: string): Promise<Content[]> {
  return until('a look at every file', () => readFiles(folder).catch(noneIfMoved))
}

function noneIfMoved(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  return null
}

async function readFiles(folder: string): Promise<Content[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return Promise.all(files.map(async (file) => ({ file, bytes: await readFile(file) })))
}
