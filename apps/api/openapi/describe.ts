import type { Type as Class } from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import Type, { type TSchema } from 'typebox'
import type { RequestHeader, ResponseHeader } from '../http/headers.js'
import type { ProblemCode } from '../http/problems.js'

export { Count, Digest, IdOf, OneOf, OrNull, Time } from '#libs/runtime/resource.js'

export const TAGS = {
  Inboxes: 'Temporary addresses: create, list, read and delete them.',
  Messages: 'The mail in an inbox.',
  Webhooks: 'Endpoints to which events are delivered as they happen.',
  Accounts: 'The owners of keys and inboxes.',
  Keys: 'API keys, which authenticate requests.',
  Members: 'The people of the account, and invitations.',
  Domains: 'Domains whose mail the account receives.',
  Usage: 'The usage of keys and accounts.',
  Operations: 'For operators of Mayfly, and this document. They require no key.',
} as const

/** Describes an operation in the document, in addition to its route, classes and scopes. */
export interface Description {
  summary: string
  /** Markdown with paragraphs and `code`. */
  description?: string
  /** The schema of each line of the body, if the handler reads one of lines. */
  bodyLine?: TSchema
  answer: Answer
  /** The problems that it may answer, in addition to those of every operation of its kind. */
  problems?: readonly ProblemCode[]
  /** Whether it needs no password of a protected inbox, although it is about an inbox. */
  isWithoutPassword?: true
  /** The headers that it reads, in addition to those of every operation of its kind. */
  requestHeaders?: readonly RequestHeader[]
}

export interface Answer {
  description: string
  /** The schema of the JSON body, or of the text in the media type that the handler produces. */
  schema: TSchema
  /** The schema of each line, if the handler has `ProducesLines`. */
  line?: TSchema
  headers?: readonly ResponseHeader[]
}

/** Describes a body in the document, in addition to its properties. The schema is named after the class. */
export interface BodyDescription {
  description: string
  /** A body that does something useful. */
  example: object
  minProperties?: number
  /** Variants that exclude each other, by the names of their schemas, with the properties that each requires. */
  variants?: Readonly<Record<string, { description: string; required: readonly string[] }>>
}

export interface PropertyDescription {
  description: string
  /** Added to the JSON Schema that follows from its class-validator rules. */
  schema: object
}

/** Describes a handler in the OpenAPI document. Every handler must have one. Its name is the id of the operation. */
export const Describe = Reflector.createDecorator<Description>()

/** The tag of a controller's operations. Every controller must have one. */
export const Tag = Reflector.createDecorator<keyof typeof TAGS>()

export const DescribeBody = Reflector.createDecorator<BodyDescription>()

const PROPERTY = Symbol('property')

/**
 * Describes a property of a body, or a parameter of a query. `schema` is added to the one that follows from its rules.
 */
export function DescribeProperty(description: string, schema: object = {}): PropertyDecorator {
  return Reflect.metadata(PROPERTY, { description, schema } satisfies PropertyDescription)
}

export function descriptionOf(metatype: Class, property: string): PropertyDescription | undefined {
  return Reflect.getMetadata(PROPERTY, metatype.prototype as object, property) as
    PropertyDescription | undefined
}

/** Content that is not text: generated clients keep its bytes. */
export const Bytes = Type.String({ format: 'binary' })
