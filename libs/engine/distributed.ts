import type { Engine, EngineOptions } from './engine.js'
export function openDistributedEngine(_options: EngineOptions): Promise<Engine> {
  throw new Error('not here yet')
}
