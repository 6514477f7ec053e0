// Bundles the pages for browsers into dist/apps/console, and their files with the hash of their content in their names, also
// compressed: index.html (the console), public.html (the public inbox) and docs.html (the API reference).
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const SOURCE = 'apps/console'
const TARGET = 'dist/apps/console'

/** Bundled together, with common chunks; the API reference, which has other libraries, on its own. */
const ENTRY_FILES = ['main.tsx', 'public-inbox.tsx', 'console.css']
const DOCS_FILES = ['docs.ts']

export async function bundleConsole() {
  const icons = readdirSync(SOURCE).filter((name) => name.endsWith('.svg'))
  const bundles = await Promise.all([bundle([...ENTRY_FILES, ...icons]), bundle(DOCS_FILES)])
  const names = new Map()
  const imported = new Map()
  const urlOf = (path) => `/console/files/${basename(path)}`
  for (const [path, { entryPoint, imports }] of bundles.flatMap(({ metafile }) =>
    Object.entries(metafile.outputs),
  )) {
    if (entryPoint !== undefined) {
      names.set(basename(entryPoint), urlOf(path))
      const chunks = imports.filter(({ kind }) => kind === 'import-statement')
      imported.set(
        basename(entryPoint),
        chunks.map((chunk) => urlOf(chunk.path)),
      )
    }
    const content = readFileSync(path)
    writeFileSync(`${path}.br`, brotliCompressSync(content))
    writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }))
  }
  const page = readFileSync(`${SOURCE}/index.html`, 'utf8')
  const pageOf = (script) =>
    page
      .replace('main.tsx', script)
      // The browser reads them at the same time as the script.
      .replace(
        '</head>',
        imported
          .get(script)
          .map((url) => `  <link rel="modulepreload" href="${url}" />\n  `)
          .join('') + '</head>',
      )
      .replaceAll(/(?<=(?:src|href|data-unread)=")[\w-]+\.(?:tsx?|css|svg)(?=")/g, (name) => names.get(name))
  writeFileSync(`${TARGET}/index.html`, pageOf('main.tsx'))
  writeFileSync(`${TARGET}/public.html`, pageOf('public-inbox.tsx'))
  writeFileSync(`${TARGET}/docs.html`, pageOf('docs.ts'))
}

function bundle(names) {
  return build({
    entryPoints: names.map((name) => `${SOURCE}/${name}`),
    loader: { '.svg': 'copy' },
    outdir: `${TARGET}/files`,
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    // The client library is bundled from its source.
    conditions: ['source', 'module'],
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  })
}
