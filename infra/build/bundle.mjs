// Replaces each entry file of a process or worker in dist/ by a bundle with the packages that it imports, so that a start
// loads tens of files instead of thousands. The other modules of dist/ stay unbundled for the tests.
import { globSync } from 'node:fs'
import { build } from 'esbuild'

/** The entry files of processes and workers, without their extension. */
export const ENTRY_FILES = ['apps/*/main', 'apps/**/*-worker']
// Not bundled: packages with native code or threads; kafkajs, because one of its modules is patched
// (libs/engines/distributed/kafka/kafka-client.ts); and packages that must be loaded first.
const NOT_BUNDLED = ['lmdb', 'chdb', 'msgpackr', 'cbor-x', 'piscina', 'kafkajs', 'reflect-metadata']
// Optional packages of Nest that are not installed.
const NOT_INSTALLED = [
  '@fastify/multipart',
  '@fastify/static',
  '@fastify/view',
  '@grpc/*',
  '@nats-io/*',
  '@nestjs/platform-express',
  '@nestjs/websockets',
  '@nestjs/websockets/*',
  'amqp-connection-manager',
  'amqplib',
  'class-transformer/storage',
  'ioredis-mock',
  'mqtt',
]
// Globals that CommonJS packages expect.
const COMMON_JS = `
import 'reflect-metadata'
import { createRequire as createRequireOfBundle } from 'node:module'
const require = createRequireOfBundle(import.meta.url)
const __filename = import.meta.filename
const __dirname = import.meta.dirname
`

export async function bundle() {
  await build({
    entryPoints: globSync(ENTRY_FILES.map((file) => `dist/${file}.js`)),
    outbase: 'dist',
    outdir: 'dist',
    allowOverwrite: true,
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    sourcemap: true,
    sourcesContent: false,
    external: [...NOT_BUNDLED, ...NOT_INSTALLED],
    banner: { js: COMMON_JS },
    logLevel: 'warning',
  })
}
