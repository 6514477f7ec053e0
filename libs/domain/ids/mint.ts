import { typeidUnboxed } from 'typeid-js'
import { brand, type Id } from './typeid.js'

/** A new id, a UUIDv7 of this moment. Reads the clock and draws random bits. */
export function mintId<Prefix extends string>(prefix: Prefix): Id<Prefix> {
  return brand(prefix, typeidUnboxed(prefix))
}
