package inspector

import (
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// compressed has answers compressed for clients that take that.
func compressed(next http.Handler) http.Handler {
	// A writer has tables of a megabyte.
	writers := sync.Pool{New: func() any {
		writer, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
		return writer
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if !takesGzip(r.Header) {
			next.ServeHTTP(w, r)
			return
		}
		zip := writers.Get().(*gzip.Writer)
		defer writers.Put(zip)
		zip.Reset(w)
		compressing := &compressingWriter{ResponseWriter: w, zip: zip}
		next.ServeHTTP(compressing, r)
		if compressing.begun {
			// A client that has gone needs no answer.
			_ = zip.Close()
		}
	})
}

// compressingWriter compresses a body.
type compressingWriter struct {
	http.ResponseWriter
	zip   *gzip.Writer
	begun bool
}

// WriteHeader implements http.ResponseWriter.
func (w *compressingWriter) WriteHeader(status int) {
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Del("Content-Length")
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *compressingWriter) Write(p []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	return w.zip.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *compressingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// takesGzip tells whether a client takes answers that are compressed by gzip.
func takesGzip(h http.Header) bool {
	for coding := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		name, quality, weighed := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";q=")
		if strings.EqualFold(name, "gzip") {
			q, err := strconv.ParseFloat(quality, 64)
			return !weighed || err == nil && q > 0
		}
	}
	return false
}
