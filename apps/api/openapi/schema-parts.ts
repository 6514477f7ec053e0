import Type, { type TSchema } from 'typebox'
import { idPattern } from '#libs/domain/ids/typeid.js'

/** The small types that answers are made of. */

export const Time = (description: string) =>
  Type.String({ format: 'date-time', pattern: '\\.\\d{3}Z$', description })

export const IdOf = (prefix: string, description: string) =>
  Type.String({ pattern: idPattern(prefix), description })

export const Count = (description: string) => Type.Integer({ minimum: 0, description })

export const Digest = (description: string) => Type.String({ pattern: '^[0-9a-f]{64}$', description })

export const OrNull = <Schema extends TSchema>(schema: Schema, description: string) =>
  Type.Union([schema, Type.Null()], { description })

/** Content that is not text: generated clients keep its bytes. */
export const Bytes = Type.String({ format: 'binary' })
