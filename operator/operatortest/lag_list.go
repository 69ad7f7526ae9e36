package operatortest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// omission is an object that a list has left out.
type omission struct {
	of      question
	version int64 // where the watch begins by which the client goes on
	uid     types.UID
	object  map[string]any
}

// question is what a client asks for by a list and the watch that follows it.
type question struct {
	client                       *lagTransport
	resource, namespace          string
	labelSelector, fieldSelector string
	metadata                     bool // and nothing else of the objects
}

func (t *lagTransport) question(request Request, req *http.Request) question {
	query := req.URL.Query()
	return question{
		client: t, resource: request.resource(), namespace: request.Namespace,
		labelSelector: query.Get("labelSelector"), fieldSelector: query.Get("fieldSelector"),
		metadata: strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata"),
	}
}

// list answers a list: an old one when any version will do, and one of its objects left out when that is to be.
func (t *lagTransport) list(request Request, req *http.Request) (*http.Response, error) {
	t.lag.mu.Lock()
	behind, lying, omit := t.lag.behind, t.lag.lying, t.lag.omit
	if t.lag.fills(request, req.URL.Query()) {
		behind, lying = t.lag.warm, true
	}
	t.lag.mu.Unlock()
	if version, ok := oldEnough(req.URL.Query(), behind, lying); ok {
		req = withQuery(req, func(query url.Values) {
			query.Set("resourceVersion", strconv.FormatInt(version, 10))
			query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
		})
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK || omit == nil {
		return resp, err
	}
	return resp, t.lag.leaveOut(t.question(request, req), request, resp)
}

// fills tells whether a list is the first one of all objects of a kind, and the cache of a replica that has waited. It needs the lock.
func (l *Lag) fills(request Request, query url.Values) bool {
	of := strings.Join([]string{request.resource(), request.Namespace, query.Get("labelSelector")}, " ")
	if l.warm == 0 || l.filled[of] || query.Get("continue") != "" || query.Get("limit") == "1" || query.Get("fieldSelector") != "" {
		return false
	}
	l.filled[of] = true
	return true
}

// oldEnough returns the version that a list is to show instead of the newest: one that is as old as the server's, and not older than what
// the client has seen. A list without a version is not old, unless the server lies, nor is one that goes on where another one has ended. A
// server that lies does not do so to who asks for one object: servers don't keep answers for such questions.
func oldEnough(query url.Values, behind int64, lying bool) (version int64, ok bool) {
	if behind == 0 || query.Get("continue") != "" || query.Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact) {
		return 0, false
	}
	if lying && query.Get("resourceVersion") == "" {
		return behind, query.Get("fieldSelector") == "" && query.Get("limit") != "1"
	}
	asked, err := strconv.ParseInt(query.Get("resourceVersion"), 10, 64)
	if err != nil {
		return 0, false
	}
	return max(asked, behind), true
}

// leaveOut takes an object out of the answer to a list, if it has the one.
func (l *Lag) leaveOut(asked question, request Request, resp *http.Response) error {
	body, err := readAnswer(request, resp)
	if err != nil {
		return err
	}
	var list struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   json.RawMessage   `json:"metadata"`
		Items      []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return fmt.Errorf("read the answer to %s: %w", request, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, item := range list.Items {
		meta := readMeta(item)
		of := request
		of.Namespace, of.Name = meta.Namespace, meta.Name
		if l.omit == nil || !l.omit(of) {
			continue
		}
		object := map[string]any{}
		if err := json.Unmarshal(item, &object); err != nil {
			return fmt.Errorf("read an object in the answer to %s: %w", request, err)
		}
		if object["kind"] == nil {
			object["apiVersion"], object["kind"] = list.APIVersion, list.Kind[:max(0, len(list.Kind)-len("List"))]
		}
		l.omit = nil
		l.omitted = append(l.omitted, &omission{of: asked, version: readMeta(body).version(), uid: meta.UID, object: object})
		list.Items = append(list.Items[:i], list.Items[i+1:]...)
		changed, err := json.Marshal(list)
		if err != nil {
			return fmt.Errorf("encode the answer to %s: %w", request, err)
		}
		replaceAnswer(resp, changed)
		return nil
	}
	return nil
}

// objectMeta is what the lag looks at of an object.
type objectMeta struct {
	Name            string    `json:"name"`
	Namespace       string    `json:"namespace"`
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion"`
}

// version is the resource version as a number; 0 when it is none.
func (m objectMeta) version() int64 {
	version, err := strconv.ParseInt(m.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// readMeta reads the metadata of an object; they are empty of what is no object.
func readMeta(object []byte) objectMeta {
	var head struct {
		Metadata objectMeta `json:"metadata"`
	}
	if json.Unmarshal(object, &head) != nil {
		return objectMeta{}
	}
	return head.Metadata
}

// readAnswer reads the body of an answer, which can be read again.
func readAnswer(request Request, resp *http.Response) ([]byte, error) {
	body, err := io.ReadAll(resp.Body)
	if closeErr := resp.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("read the answer to %s: %w", request, err)
	}
	replaceAnswer(resp, body)
	return body, nil
}

func replaceAnswer(resp *http.Response, body []byte) {
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	resp.Header.Del("Content-Length")
}
