import { typeidUnboxed } from 'typeid-js'
import { brand, type Id } from './typeid.js'

/** Makes a new id, a UUIDv7. Reads the clock and random bits. */
export function mintId<Prefix extends string>(prefix: Prefix): Id<Prefix> {
  return brand(prefix, typeidUnboxed(prefix))
}
