package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// ErrConflict is in the chain of the error for a registration that has changed since it was read.
var ErrConflict = errors.New("it has changed meanwhile")

// Client talks to a registry. It is safe for concurrent use.
type Client struct {
	// URL is the address of the registry, such as http://127.0.0.1:8500.
	URL string
	// HTTP carries the requests. Default: http.DefaultClient.
	HTTP *http.Client
}

// List returns all registrations.
func (c *Client) List(ctx context.Context) (registrations []Registration, err error) {
	_, err = c.call(ctx, http.MethodGet, "/registrations", nil, &registrations)
	return registrations, err
}

// Get returns a registration, or nil if there is none of that name.
func (c *Client) Get(ctx context.Context, name string) (*Registration, error) {
	registration := &Registration{}
	found, err := c.call(ctx, http.MethodGet, "/registrations/"+url.PathEscape(name), nil, registration)
	if err != nil || !found {
		return nil, err
	}
	return registration, nil
}

// Put sets a registration that has the given version still, or does not exist if that is 0, and writes down its new version.
func (c *Client) Put(ctx context.Context, registration *Registration) error {
	written := &Registration{}
	_, err := c.call(ctx, http.MethodPut, "/registrations/"+url.PathEscape(registration.Name), registration, written)
	if err == nil {
		registration.Version = written.Version
	}
	return err
}

// Delete removes a registration that has the given version still. One that is not there is no error.
func (c *Client) Delete(ctx context.Context, registration *Registration) error {
	path := fmt.Sprintf("/registrations/%s?version=%d", url.PathEscape(registration.Name), registration.Version)
	_, err := c.call(ctx, http.MethodDelete, path, nil, nil)
	return err
}

// call sends a request and decodes the answer into answer, unless that is nil. It is false when there is no such thing.
func (c *Client) call(ctx context.Context, method, path string, body, answer any) (found bool, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("registry: %s %s: %w", method, path, err)
		}
	}()
	var content bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&content).Encode(body); err != nil {
			return false, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.URL, "/")+path, &content)
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/json")
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode == http.StatusNotFound:
		return false, nil
	case response.StatusCode == http.StatusConflict:
		return false, ErrConflict
	case response.StatusCode >= http.StatusMultipleChoices:
		message, _ := io.ReadAll(io.LimitReader(response.Body, 1024))
		return false, fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(message))
	case answer == nil:
		return true, nil
	}
	return true, json.NewDecoder(response.Body).Decode(answer)
}
