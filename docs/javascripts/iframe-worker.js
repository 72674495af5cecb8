/* Browsers start no workers for pages that are read from the disk. There the site's search runs in a hidden frame. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      const inside = frame.contentWindow
      this.waiting = []   // what is said to it before its script is there
      inside.document.open()
      inside.document.write("<!doctype html><body>")
      inside.document.close()
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      inside.importScripts = (...urls) => urls.reduce((done, one) => done.then(() => load(inside, one)), Promise.resolve())
      load(inside, new URL(url, location.href).href).then(() => {
        this.inside = inside
        this.waiting.forEach(data => this.postMessage(data))
      })
    }

    postMessage(data) {
      if (this.inside) this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }))
      else this.waiting.push(data)
    }

    terminate() {}
  }
}

function load(inside, url) {
  return new Promise((done, failed) => {
    const script = inside.document.createElement("script")
    script.src = url
    script.onload = done
    script.onerror = failed
    inside.document.body.appendChild(script)
  })
}
