// Bundles each process and worker of dist/ with the packages it imports, in its place: a start loads tens of files
// instead of thousands. Other modules of dist/ stay as swc wrote them, for the tests.
import { globSync } from 'node:fs'
import { build } from 'esbuild'

// Stay imports of node_modules/: what has native code or threads of its own; kafkajs, since a module within it is
// patched (libs/engines/distributed/kafka/kafka-client.ts); and what must run first.
const NOT_BUNDLED = ['lmdb', 'chdb', 'msgpackr', 'cbor-x', 'piscina', 'kafkajs', 'reflect-metadata']
// Imported by Nest only if an application uses them. They are not installed.
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
// What CommonJS packages expect to find.
const COMMON_JS = `
import 'reflect-metadata'
import { createRequire as createRequireOfBundle } from 'node:module'
const require = createRequireOfBundle(import.meta.url)
const __filename = import.meta.filename
const __dirname = import.meta.dirname
`

export async function bundle() {
  await build({
    entryPoints: globSync(['dist/apps/*/main.js', 'dist/apps/**/*-worker.js']),
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
