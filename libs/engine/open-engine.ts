import { openDistributedEngine } from './distributed.js'
import { openEmbeddedEngine } from './embedded.js'
import type { Engine, EngineOptions } from './engine.js'

/** Opens the engine that the settings choose. Rejects with StartError where it can't be had. */
export function openEngine(options: EngineOptions): Promise<Engine> {
  return options.settings.kafkaBrokers === null ? openEmbeddedEngine(options) : openDistributedEngine(options)
}
