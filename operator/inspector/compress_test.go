package inspector_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/operator/inspector"
)

func TestAnswersAreCompressedForThoseWhoTakeIt(t *testing.T) {
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home")})
	w.reconciled(1)
	for accepted, want := range map[string]string{
		"gzip": "gzip", "br, gzip;q=0.5": "gzip", "deflate, GZIP": "gzip", "": "", "br": "", "gzip;q=0": "", "gzip; q=0.0": "", "xgzip": "",
	} {
		for _, path := range []string{"", "objects", objectPath("home"), "assets/style.css", "assets/script.js"} {
			request := w.request(http.MethodGet, path, nil)
			request.Header.Set("Accept-Encoding", accepted)
			answer, err := w.client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			if got := answer.Header.Get("Content-Encoding"); got != want || answer.Header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%q to %q is encoded as %q, want %q", path, accepted, got, want)
			}
			var body io.Reader = answer.Body
			if want != "" {
				if body, err = gzip.NewReader(answer.Body); err != nil {
					t.Fatal(err)
				}
			}
			text, err := io.ReadAll(body)
			if err != nil || len(text) == 0 {
				t.Errorf("%q: %d bytes are read: %v", path, len(text), err)
			}
			answer.Body.Close()
		}
	}
	request := w.request(http.MethodGet, "events", nil)
	request.Header.Set("Accept-Encoding", "gzip")
	answer, err := w.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if got := answer.Header.Get("Content-Encoding"); got != "" {
		t.Errorf("a stream is encoded as %q", got)
	}
}
