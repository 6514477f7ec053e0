import { IsIn, IsInt, IsOptional, IsString, Max, Min } from 'class-validator'
import { Says } from '../openapi/describe.js'
import { FromDigits } from './query-values.js'

/** `limit`: a whole number from 1. */
export function IsLimit({ most }: { most: number }): PropertyDecorator {
  return all(
    Says('How many a page has at most.'),
    FromDigits(),
    Min(1, { message: 'limit must be at least 1' }),
    Max(most, { message: `limit must be at most ${most}` }),
    IsInt({ message: 'limit must be a whole number' }),
  )
}

/** `order`: asc or desc. */
export function IsOrder(): PropertyDecorator {
  return all(Says('Oldest or newest first.'), IsIn(['asc', 'desc'], { message: 'order must be asc or desc' }))
}

/** `cursor`: text that an earlier answer gave. */
export function IsCursor(description = 'Where the list goes on: what `Link` has.'): PropertyDecorator {
  return all(Says(description), IsOptional(), IsString({ message: 'cursor must come once' }))
}

function all(...decorators: readonly PropertyDecorator[]): PropertyDecorator {
  return (target, property) => {
    for (const decorate of decorators.toReversed()) decorate(target, property)
  }
}
