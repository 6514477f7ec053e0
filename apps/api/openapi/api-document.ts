import type { Type } from '@nestjs/common'
import { docsPage } from './docs-page.js'
import { describeApi } from './document.js'

/** What the API says of itself, made when it is asked for first: by then the address of links is known. */
export class ApiDocument {
  private made: { json: string; page: string } | null = null

  constructor(
    private readonly controllers: readonly Type[],
    private readonly publicUrl: () => string,
  ) {}

  get json(): string {
    return this.make().json
  }

  get page(): string {
    return this.make().page
  }

  private make() {
    if (this.made === null) {
      const document = describeApi(this.controllers, this.publicUrl())
      this.made = { json: JSON.stringify(document), page: docsPage(document) }
    }
    return this.made
  }
}
