package operatortest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fault is one way for a request to go wrong. The functions of this package that
// return one are its kinds. The zero Fault is not valid.
type Fault struct {
	text string
	do   func(exchange) (*http.Response, error)
	then linkState // the link's state from the moment the fault is chosen
}

// String says what the fault does, in the words of the function that made it.
func (f Fault) String() string { return f.text }

// exchange is what a fault can do with a request: send it or not.
type exchange struct {
	ctx     context.Context // ends with the caller's, and when the link is cut
	request Request
	send    func(context.Context) (*http.Response, error)
	shut    func() // cuts the link
}

var pass = Fault{do: func(x exchange) (*http.Response, error) { return x.send(x.ctx) }}

// FailBefore fails a request before it was carried out: nothing is sent, and the
// client sees a refused connection.
func FailBefore() Fault {
	return Fault{text: "fail before", do: func(exchange) (*http.Response, error) {
		return nil, refused("failed before it was carried out")
	}}
}

// FailAfter fails a request after it was carried out: the server's answer,
// whatever it is, is lost, and the client sees a reset connection. The request is
// carried out even when the client's context ends in between. (A client-go client
// repeats a read after a reset connection, never a write.)
func FailAfter() Fault {
	return Fault{text: "fail after", do: func(x exchange) (*http.Response, error) {
		if err := carryOut(x); err != nil {
			return nil, err
		}
		return nil, lost("failed after it was carried out")
	}}
}

// Delay carries a request out d later, unless the client's context ends first.
func Delay(d time.Duration) Fault {
	return Fault{text: "delay " + d.String(), do: func(x exchange) (*http.Response, error) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return x.send(x.ctx)
		case <-x.ctx.Done():
			return nil, x.ctx.Err()
		}
	}}
}

// DelayUntil carries a request out once released is closed (or is sent a value,
// which releases one request), unless the client's context ends first.
func DelayUntil(released <-chan struct{}) Fault {
	return Fault{text: "delay until released", do: func(x exchange) (*http.Response, error) {
		select {
		case <-released:
			return x.send(x.ctx)
		case <-x.ctx.Done():
			return nil, x.ctx.Err()
		}
	}}
}

// TimeOut keeps the client waiting until its context ends, and never sends the
// request. A client without a deadline waits until the link is cut.
func TimeOut() Fault {
	return Fault{text: "time-out", do: func(x exchange) (*http.Response, error) {
		<-x.ctx.Done()
		return nil, x.ctx.Err()
	}}
}

// TimeOutAfter is [TimeOut] for a request that is carried out: only its answer
// never arrives.
func TimeOutAfter() Fault {
	return Fault{text: "time-out after", do: func(x exchange) (*http.Response, error) {
		if err := carryOut(x); err != nil {
			return nil, err
		}
		<-x.ctx.Done()
		return nil, x.ctx.Err()
	}}
}

// Conflict answers 409, as when somebody else changed the object in between;
// nothing is sent.
func Conflict() Fault {
	return answer("409 conflict", func(r Request) *apierrors.StatusError {
		return apierrors.NewConflict(r.groupResource(), r.Name, errors.New("injected fault"))
	})
}

// TooManyRequests answers 429 with a Retry-After header of retryAfter, rounded up
// to whole seconds, as the header has it; nothing is sent. client-go waits for so
// long and tries again by itself, ten times at most, unless its transport is informer.RetryAfterTransport.
func TooManyRequests(retryAfter time.Duration) Fault {
	seconds := int((retryAfter + time.Second - 1) / time.Second)
	return answer("429 too many requests", func(Request) *apierrors.StatusError {
		return apierrors.NewTooManyRequests("injected fault", seconds)
	})
}

// InternalError answers 500; nothing is sent.
func InternalError() Fault {
	return answer("500 internal error", func(Request) *apierrors.StatusError {
		return apierrors.NewInternalError(errors.New("injected fault"))
	})
}

// Answer answers with err, which decides the code and the text, such as
// apierrors.NewServiceUnavailable("…"); nothing is sent.
func Answer(err *apierrors.StatusError) Fault {
	text := fmt.Sprintf("%d %s", err.ErrStatus.Code, err.ErrStatus.Reason)
	return answer(text, func(Request) *apierrors.StatusError { return err })
}

// Lie carries a request out and answers with err all the same, as a proxy does that has sent the request twice, or a
// server whose store was slow. What the server itself refuses gets the server's answer. The request is carried out even when
// the client's context ends in between. [FailAfter] is the lie of a broken connection.
func Lie(err *apierrors.StatusError) Fault {
	return lie(Answer(err))
}

// LieNotFound is [Lie] with 404.
func LieNotFound() Fault {
	return lie(answer("404 not found", func(r Request) *apierrors.StatusError {
		return apierrors.NewNotFound(r.groupResource(), r.Name)
	}))
}

// LieConflict is [Lie] with 409: that the object exists already for a create, that somebody else changed it for other requests.
func LieConflict() Fault {
	conflict := Conflict()
	exists := answer("", func(r Request) *apierrors.StatusError {
		return apierrors.NewAlreadyExists(r.groupResource(), r.Name)
	})
	return lie(Fault{text: conflict.text, do: func(x exchange) (*http.Response, error) {
		if x.request.Verb == "create" {
			return exists.do(x)
		}
		return conflict.do(x)
	}})
}

// LieInternalError is [Lie] with 500.
func LieInternalError() Fault { return lie(InternalError()) }

func answer(text string, err func(Request) *apierrors.StatusError) Fault {
	return Fault{text: text, do: func(x exchange) (*http.Response, error) {
		return statusResponse(err(x.request).ErrStatus)
	}}
}

func lie(answer Fault) Fault {
	return Fault{text: "carried out, answered with " + answer.text, do: func(x exchange) (*http.Response, error) {
		resp, err := x.send(context.WithoutCancel(x.ctx))
		if err != nil || resp.StatusCode >= http.StatusMultipleChoices {
			return resp, err
		}
		if err := drop(resp); err != nil {
			return nil, err
		}
		return answer.do(x)
	}}
}

// carryOut sends a request and drops its answer.
func carryOut(x exchange) error {
	resp, err := x.send(context.WithoutCancel(x.ctx))
	if err != nil {
		return err
	}
	if !x.request.isWrite() {
		return resp.Body.Close()
	}
	return drop(resp)
}

// drop reads an answer to its end: some servers, such as a Docker engine that pulls an image, work while they answer.
func drop(resp *http.Response) error {
	_, err := io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

func statusResponse(status metav1.Status) (*http.Response, error) {
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("encode the answer of a fault: %w", err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if status.Code == http.StatusTooManyRequests && status.Details != nil {
		header.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", status.Code, http.StatusText(int(status.Code))),
		StatusCode:    int(status.Code),
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
	}, nil
}

func (r Request) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}
}
