// Package guards reads guards, the policies about what an operator is about to do, from a file
// with expressions.
//
//	guards:
//	- name: keep-releases-in-prod
//	  match: change.action == 'delete' && change.kind == 'HelmRelease' && namespaceObject.metadata.labels[?'env'].orValue('') == 'prod'
//	  action: deny
//	  message: Ask the owners of prod first.
//	- name: few-claims
//	  match: change.action == 'delete' && change.kind == 'PersistentVolumeClaim'
//	  limit: {max: 5, per: 10m}
//	- predefined: deletion-of-namespaces
//	  action: approve
//
// It is a package of its own because of what it links: an operator that does not set
// command.Config.ReadGuards has nothing of CEL.
//
// # Expressions
//
// They are in CEL, with the functions and the limit on costs that Kubernetes has for a validation.
// Their result is a bool. Each is asked about each change.
//
//	change            action ('create', 'update', 'delete', or 'unknown'), apiVersion, kind,
//	                  namespace, name, uid, labels, annotations, description, replaces (bool), and
//	                  fields, a list of path, from, to and sensitive. What is not known is an
//	                  empty text or list, and never missing
//	object            the object that is reconciled
//	namespaceObject   the namespace of the object that changes, or null for an object without one,
//	                  or if it does not exist. It is read where the operator runs, and remembered
//	                  for ten seconds
//	operator          name, framework and resource
//
// Values of Secrets, and others that must not be shown, are replaced in all of them.
//
// An expression that can't be answered denies: a key that is missing is an error. Ask for it first
// ('env' in change.labels && …, has(object.spec.replicas) && …), or give a default
// (change.labels[?'env'].orValue("")).
//
// # Ready-made guards
//
// They need an action or a limit. The limit of mass-deletion has a default.
//
//	deletion-of-claims                 deletes a PersistentVolumeClaim
//	deletion-of-namespaces             deletes a Namespace
//	deletion-of-definitions            deletes a CustomResourceDefinition
//	replacement-of-immutable-objects   deletes an object and creates it again, because it can't be
//	                                   updated
//	mass-deletion                      deletes something for more than 10 % of all objects in an
//	                                   hour
package guards
