"""What each AgentDojo function does to the world: one table, decided by reading the code, never the descriptions.

The first word is the effect. `read` leaves the environment as it is and `write` changes it, even if only by marking a
mail as read. The labels:

    private     the result holds what only the user may see
    public      what the function is given reaches somebody else: a mail's recipient, a bank, a web server
    trusted     the result holds nothing that an outsider wrote: the house's own data, or a receipt for the arguments

`check.py` holds the table against the package: that a `read` changes nothing, and that no `trusted` result ever shows
a planted text. A function that is missing here cannot be registered.
"""

from __future__ import annotations

FUNCTIONS = {
    # Mail (workspace, travel)
    "get_unread_emails": "write private",
    "get_sent_emails": "read private",
    "get_received_emails": "read private",
    "get_draft_emails": "read private",
    "search_emails": "read private",
    "search_contacts_by_name": "read private",
    "search_contacts_by_email": "read private",
    "send_email": "write public trusted",
    "delete_email": "write trusted",
    # Calendar (workspace, travel): every change is mailed to the participants
    "get_current_day": "read trusted",
    "search_calendar_events": "read private",
    "get_day_calendar_events": "read private",
    "create_calendar_event": "write public trusted",
    "cancel_calendar_event": "write public trusted",
    "reschedule_calendar_event": "write public private",
    "add_calendar_event_participants": "write public private",
    # Files (workspace)
    "list_files": "read private",
    "search_files": "read private",
    "search_files_by_filename": "read private",
    "get_file_by_id": "read private",
    "create_file": "write trusted",
    "append_to_file": "write private",
    "delete_file": "write private",
    "share_file": "write public private",
    # Travel: the listings are the companies' own, and anybody may review them
    "get_user_information": "read private trusted",
    "get_all_hotels_in_city": "read",
    "get_hotels_prices": "read",
    "get_hotels_address": "read",
    "get_rating_reviews_for_hotels": "read",
    "get_all_restaurants_in_city": "read",
    "get_cuisine_type_for_restaurants": "read",
    "get_restaurants_address": "read",
    "get_rating_reviews_for_restaurants": "read",
    "get_dietary_restrictions_for_all_restaurants": "read",
    "get_contact_information_for_restaurants": "read",
    "get_price_for_restaurants": "read",
    "check_restaurant_opening_hours": "read",
    "get_all_car_rental_companies_in_city": "read",
    "get_car_types_available": "read",
    "get_rating_reviews_for_car_rental": "read",
    "get_car_fuel_options": "read",
    "get_car_rental_address": "read",
    "get_car_price_per_day": "read",
    "get_flight_information": "read",
    "reserve_hotel": "write public trusted",
    "reserve_restaurant": "write public trusted",
    "reserve_car_rental": "write public trusted",
    # Bank: whoever sends money writes the subject of a transaction
    "get_iban": "read private trusted",
    "get_balance": "read private trusted",
    "get_user_info": "read private trusted",
    "get_most_recent_transactions": "read private",
    "get_scheduled_transactions": "read private",
    "read_file": "read private",
    "send_money": "write public trusted",
    "schedule_transaction": "write public trusted",
    "update_scheduled_transaction": "write public trusted",
    "update_password": "write trusted",
    "update_user_info": "write private trusted",
    # Slack: whoever makes a channel names it. To open a page is an effect too: its server learns the address, and one
    # of the attacks is after nothing but the visit
    "get_channels": "read",
    "get_users_in_channel": "read",
    "read_channel_messages": "read private",
    "read_inbox": "read private",
    "send_direct_message": "write public trusted",
    "send_channel_message": "write public trusted",
    "invite_user_to_slack": "write public trusted",
    "add_user_to_channel": "write trusted",
    "remove_user_from_slack": "write trusted",
    "get_webpage": "write public",
    "post_webpage": "write public trusted",
}
